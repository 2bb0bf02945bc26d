import { Redis, type RedisOptions } from 'ioredis';
import { redisStore } from '../../../../lib/stores/redis/redis.store.js';
import { closeNodeRedis, lentClient } from '../../../support/redis-clients.js';
import type { Random } from '../../random.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore } from '../store.js';

export interface RedisPlace {
  connection: RedisOptions;
  replicaAcks?: number;
  lentEnd?: boolean;
  sentinels?: { name: string; sentinels: { host: string; port: number }[] };
}

/** A store over a client of its own, or over one of ioredis or node-redis that the worker lends it, with RESP 2 or 3. */
export function open(place: unknown, random: Random): OpenedStore {
  const { connection, sentinels, replicaAcks = 0, lentEnd = false } = place as RedisPlace;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const options: RedisOptions = { ...connection, protocol: random.pick([2, 3]) };
  if (sentinels) return own(redisStore({ ...sentinels, options, requestTimeout }));
  const way = random.pick(replicaAcks > 0 ? ['own', 'lent'] : ['own', 'lent', 'node-redis']);
  if (way === 'own') return own(redisStore({ options, requestTimeout, replicaAcks }));
  // Version 5 of node-redis cannot put a prefix before keys.
  return way === 'lent' || options.keyPrefix !== undefined
    ? lent(options, requestTimeout, replicaAcks, lentEnd)
    : lentNodeRedis(options, requestTimeout);
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

/** ms until its owner connects a client again that has ended */
const REPAIR = 200;

/** The settings that the guarantees ask of a lent client: it reconnects soon, and notices a silent connection. Or it ends, and its owner sees to it. */
function lent(options: RedisOptions, requestTimeout: number, replicaAcks: number, ends: boolean): OpenedStore {
  let isLeaving = false;
  let isOver = false;
  const client = new Redis({
    ...options,
    retryStrategy: (times) => (ends ? null : Math.min(50 * times, 400)),
    socketTimeout: requestTimeout,
    connectTimeout: requestTimeout,
    maxLoadingRetryTime: 300,
    // Once for each connection: ioredis adds a listener for each reply for which it reconnects.
    reconnectOnError(error) {
      const isFirst = error.message.startsWith('READONLY') && !isLeaving;
      isLeaving ||= isFirst;
      return isFirst;
    },
  });
  client.on('close', () => (isLeaving = false));
  client.on('error', () => undefined);
  const repair = (): void => {
    if (!isOver) client.connect().catch(() => undefined);
  };
  if (ends) client.on('end', () => setTimeout(repair, REPAIR));
  const listeners = watchListeners(client);
  return {
    store: redisStore({ client, requestTimeout, replicaAcks }),
    detail: ends ? 'a lent client that ends,' : undefined,
    listeners,
    async closeLent() {
      isOver = true;
      client.disconnect();
    },
  };
}
