import { eventually } from './eventually.js';
import { startRedis, type RedisServer } from './redis-server.js';

export interface StartSentinelOptions {
  /** what clients ask for */
  name: string;
  /** started with a port; its replicas are found by asking it */
  master: RedisServer;
  /** how many sentinels must agree that the master is down */
  quorum?: number;
  /** silence of the master after which this sentinel calls it down, milliseconds */
  downAfter?: number;
}

/** One sentinel, which watches one master and knows that it is up. */
export async function startSentinel({ name, master, quorum = 1, downAfter = 1_000 }: StartSentinelOptions): Promise<RedisServer> {
  const config = [
    `sentinel monitor ${name} 127.0.0.1 ${master.port} ${quorum}`,
    `sentinel down-after-milliseconds ${name} ${downAfter}`,
    `sentinel failover-timeout ${name} ${10 * downAfter}`,
  ];
  const sentinel = await startRedis({ port: 'free', config: `${config.join('\n')}\n`, args: ['--sentinel'] });
  try {
    const client = sentinel.client();
    await eventually(async () => /status=ok/.test(await client.info('sentinel')));
    client.disconnect();
    return sentinel;
  } catch (error) {
    await sentinel.stop();
    throw error;
  }
}
