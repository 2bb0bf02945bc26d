import { Redis, type RedisOptions } from 'ioredis';
import { redisStore, type RedisStoreOptions } from '../../../../lib/stores/redis/redis.store.js';
import { nodeRedisClient } from '../../../support/redis-clients.js';
import type { OpenedStore, Opening } from '../store.js';

export interface RedisTarget {
  connection: RedisOptions;
  replicaAcks?: number;
  sentinels?: { name: string; sentinels: { host: string; port: number }[] };
}

/** A store over options, or over a client of ioredis or node-redis that the worker passes, with RESP 2 or 3. */
export function open({ connection, sentinels, replicaAcks = 0 }: RedisTarget, { requestTimeout, random }: Opening): OpenedStore {
  const options: RedisOptions = { ...connection, protocol: random.pick([2, 3]) };
  if (sentinels) return opened({ ...sentinels, options, requestTimeout });
  // Version 5 of node-redis cannot put a prefix before keys.
  const way = random.pick(options.keyPrefix === undefined ? ['options', 'ioredis', 'node-redis'] : ['options', 'ioredis']);
  if (way === 'options') return opened({ options, requestTimeout, replicaAcks });
  const client = way === 'ioredis' ? new Redis({ ...options, lazyConnect: true }) : nodeRedisClient(options);
  return opened({ client, requestTimeout, replicaAcks }, way);
}

function opened(options: RedisStoreOptions, detail?: string): OpenedStore {
  return { store: redisStore(options), detail };
}
