import { Cluster, type RedisOptions } from 'ioredis';
import { redisStore } from '../../../../lib/stores/redis/redis.store.js';
import type { Random } from '../../random.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore } from '../store.js';

export interface ClusterPlace {
  nodes: { host: string; port: number }[];
}

/** A store over a client of its own, or over one that is lent to it. */
export function open(place: unknown, random: Random): OpenedStore {
  const { nodes } = place as ClusterPlace;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const detail = random.pick(['own', 'lent']);
  if (detail === 'own') {
    return { store: redisStore({ cluster: nodes, requestTimeout }), detail, listeners: () => [], closeLent: async () => undefined };
  }
  const redisOptions: RedisOptions = { connectTimeout: requestTimeout, socketTimeout: requestTimeout };
  const client = new Cluster(nodes, { redisOptions });
  client.on('error', () => undefined);
  const watched = watchListeners(client);
  // ioredis has one of its own once it connects.
  const listeners = (): string[] => watched().filter((each) => each !== 'close ×1');
  return { store: redisStore({ client, requestTimeout }), detail, listeners, closeLent: async () => client.disconnect() };
}
