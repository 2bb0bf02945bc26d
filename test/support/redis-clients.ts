import type { RedisOptions } from 'ioredis';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import * as five from 'redis';
import * as six from 'redis-v6';

/** The package over which stores are tested: `ioredis` where nothing is said. */
export type ClientName = 'ioredis' | 'node-redis' | 'node-redis-6';
export const clientName = (process.env.REDIS_CLIENT ?? 'ioredis') as ClientName;
export const isIoredis = clientName === 'ioredis';

// What is used here is the same in both versions.
const packages = { 'node-redis': five, 'node-redis-6': six as unknown as typeof five };
const nodeRedis = packages[clientName === 'ioredis' ? 'node-redis' : clientName];

/** A client of node-redis, from options of ioredis. A store never connects it, so that it need not be closed. */
export function nodeRedisClient(options: RedisOptions): ReturnType<typeof five.createClient> {
  return nodeRedis.createClient(optionsOf(options));
}

/** What ioredis calls so in the words of node-redis. */
function optionsOf(options: RedisOptions): five.RedisClientOptions {
  const { path, host = '127.0.0.1', port, tls, username, password, db, protocol, keyPrefix } = options;
  const socket = path !== undefined ? { path } : { host, port, ...(tls && { tls: true, ...tls }) };
  return {
    socket: socket as five.RedisClientOptions['socket'],
    username,
    password,
    database: db,
    ...(protocol !== undefined && { RESP: protocol }),
    ...(keyPrefix !== undefined && { keyPrefix }),
  };
}

/** The same store over the client that is tested. */
export function storeOver(store: RedisStoreOptions): RedisStoreOptions {
  if (isIoredis) return store;
  const { options, sentinels, requestTimeout, fenceTimeout, replicaAcks } = store as OfOneServer;
  // For Sentinel and Cluster there is only ioredis.
  if (!options || sentinels || !canPrefix(options.keyPrefix)) return store;
  return { client: nodeRedisClient(options), requestTimeout, fenceTimeout, replicaAcks };
}

type OfOneServer = Partial<Extract<RedisStoreOptions, { sentinels: unknown }>>;

/** Version 5 has no such option: then a test of it is over ioredis. */
export function canPrefix(keyPrefix: string | undefined): boolean {
  return keyPrefix === undefined || clientName === 'node-redis-6';
}
