import { Cluster } from 'ioredis';
import { redisStore } from '../../../../lib/stores/redis/redis.store.js';
import type { OpenedStore, Opening } from '../store.js';

export interface ClusterTarget {
  nodes: { host: string; port: number }[];
}

/** A store over the addresses of the nodes, or over a client that the worker passes. */
export function open({ nodes }: ClusterTarget, { requestTimeout, random }: Opening): OpenedStore {
  const detail = random.pick(['cluster', 'client']);
  const where = detail === 'cluster' ? { cluster: nodes } : { client: new Cluster(nodes, { lazyConnect: true }) };
  return { store: redisStore({ ...where, requestTimeout }), detail };
}
