import { Cluster, type RedisOptions } from 'ioredis';
import { redisStore } from '../../../lib/stores/redis/redis.store.js';
import { closeNodeRedis, nodeRedisCluster } from '../../../test/support/redis-clients.js';
import type { Random } from '../../random.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore } from '../store.js';

export interface ClusterPlace {
  nodes: { host: string; port: number }[];
}

/** A store over a client of its own, over one of ioredis that is lent to it, or over one of node-redis. */
export function open(place: unknown, random: Random): OpenedStore {
  const { nodes } = place as ClusterPlace;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const detail = random.pick(['own', 'lent', 'node-redis']);
  if (detail === 'own') {
    return { store: redisStore({ cluster: nodes, requestTimeout }), detail, listeners: () => [], closeLent: async () => undefined };
  }
  if (detail === 'node-redis') {
    const client = nodeRedisCluster(nodes);
    return { store: redisStore({ client, requestTimeout }), detail, listeners: () => [], closeLent: () => closeNodeRedis(client) };
  }
  const redisOptions: RedisOptions = { connectTimeout: requestTimeout, socketTimeout: requestTimeout };
  const client = new Cluster(nodes, { redisOptions });
  client.on('error', () => undefined);
  const watched = watchListeners(client);
  // ioredis has one of its own once it connects.
  const listeners = (): string[] => watched().filter((each) => each !== 'close ×1');
  return { store: redisStore({ client, requestTimeout }), detail, listeners, closeLent: async () => client.disconnect() };
}
