import { StoreError } from '../../../core/model/errors.js';
import type { StoreReport } from '../../../core/store/lock-store.js';
import { RedisInfo } from '../operate/redis.info.js';
import type { RedisConnection } from './redis.connection.js';
import { OF_CLUSTER, OF_REPLICA } from './redis.errors.js';

/** What the server says of itself. A user without the right to INFO learns nothing. */
export async function reportOf(connection: RedisConnection): Promise<StoreReport> {
  const text = await connection.request((client) => client.info?.() ?? Promise.resolve('')).catch(() => '');
  const info = new RedisInfo(typeof text === 'string' ? text : '');
  return {
    server: info.server,
    wakesWaiters: true,
    advice: [info.ageAdvice, info.evictionAdvice].filter((advice) => advice !== undefined),
    refusal: await refusalOf(info, connection),
  };
}

/** A client of a Cluster asks any node, also a replica. A node that has all slots is as good as a server; a proxy may stand before several. */
async function refusalOf(info: RedisInfo, connection: RedisConnection): Promise<string | undefined> {
  if (connection.client.isCluster) return undefined;
  if (info.field('cluster_enabled') === '1') {
    const state = await connection.request((client) => client.call('CLUSTER', 'INFO')).catch(() => '');
    if (Number(/cluster_size:(\d+)/.exec(String(state))?.[1]) > 1)
      connection.misled = new StoreError(OF_CLUSTER, { transient: false, isRefusal: true });
  }
  return (connection.astray ?? connection.misled)?.message ?? (info.field('role') === 'slave' ? OF_REPLICA : undefined);
}
