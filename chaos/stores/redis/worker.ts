import { Redis, type RedisOptions } from 'ioredis';
import { redisStore } from '../../../lib/stores/redis/redis.store.js';
import { closeNodeRedis, lentClient } from '../../../test/support/redis-clients.js';
import type { Random } from '../../random.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore } from '../store.js';

export interface RedisPlace {
  connection: RedisOptions;
  sentinels?: { name: string; sentinels: { host: string; port: number }[] };
}

/** A store over a client of its own, or over one of ioredis or node-redis that the worker lends it, with RESP 2 or 3. */
export function open(place: unknown, random: Random): OpenedStore {
  const { connection, sentinels } = place as RedisPlace;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const options: RedisOptions = { ...connection, protocol: random.pick([2, 3]) };
  if (sentinels) return own(redisStore({ ...sentinels, options, requestTimeout }));
  const way = random.pick(['own', 'lent', 'node-redis']);
  if (way === 'own') return own(redisStore({ options, requestTimeout }));
  // Version 5 of node-redis cannot put a prefix before keys.
  return way === 'lent' || options.keyPrefix !== undefined ? lent(options, requestTimeout) : lentNodeRedis(options, requestTimeout);
}

function own(store: OpenedStore['store']): OpenedStore {
  return { store, listeners: () => [], closeLent: async () => undefined };
}

function lentNodeRedis(options: RedisOptions, requestTimeout: number): OpenedStore {
  const client = lentClient({ ...options, socketTimeout: requestTimeout, connectTimeout: requestTimeout }, requestTimeout);
  return {
    store: redisStore({ client, requestTimeout }),
    detail: 'node-redis',
    listeners: () => [],
    closeLent: () => closeNodeRedis(client),
  };
}

/** The settings that the guarantees ask of a lent client: it reconnects soon, and notices a silent connection. */
function lent(options: RedisOptions, requestTimeout: number): OpenedStore {
  let isLeaving = false;
  const client = new Redis({
    ...options,
    retryStrategy: (times) => Math.min(50 * times, 400),
    socketTimeout: requestTimeout,
    connectTimeout: requestTimeout,
    maxLoadingRetryTime: 300,
    // Once for each connection: ioredis adds a listener for each reply for which it is told to reconnect.
    reconnectOnError(error) {
      const isFirst = error.message.startsWith('READONLY') && !isLeaving;
      isLeaving ||= isFirst;
      return isFirst;
    },
  });
  client.on('close', () => (isLeaving = false));
  client.on('error', () => undefined);
  const listeners = watchListeners(client);
  return {
    store: redisStore({ client, requestTimeout }),
    listeners,
    async closeLent() {
      client.disconnect();
    },
  };
}
