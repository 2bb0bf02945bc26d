import { eventually } from './eventually.js';
import { startRedis, type RedisServer } from './redis-server.js';

/** A cluster of one node that owns every slot. Redis takes two seconds to call itself healthy. */
export async function startClusterNode(args: string[] = []): Promise<RedisServer> {
  const cluster = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
  const node = await startRedis({ port: 'free', args: [...cluster, ...args] });
  try {
    const client = node.client();
    await client.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await eventually(async () => (await client.cluster('INFO')).includes('cluster_state:ok'), { within: 15_000, every: 50 });
    client.disconnect();
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}
