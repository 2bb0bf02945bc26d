import type { RedisOptions } from 'ioredis';
import type { NodeRedisClient, RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import * as five from 'redis';
import * as six from 'redis-v6';

/** The package over which stores are tested: `ioredis` where nothing is said. */
export type ClientName = 'ioredis' | 'node-redis' | 'node-redis-6';
export const clientName = (process.env.REDIS_CLIENT ?? 'ioredis') as ClientName;
export const isIoredis = clientName === 'ioredis';

// What is used here is the same in both versions.
const packages = { 'node-redis': five, 'node-redis-6': six as unknown as typeof five };
export const nodeRedis = packages[clientName === 'ioredis' ? 'node-redis' : clientName];

/** A client of node-redis that is not connected yet, from options of ioredis. */
export function nodeRedisClient(options: RedisOptions, more: five.RedisClientOptions = {}): ReturnType<typeof five.createClient> {
  const client = nodeRedis.createClient({ ...optionsOf(options), ...more }) as ReturnType<typeof five.createClient>;
  client.on('error', () => undefined); // without a listener it throws
  return client;
}

/** What ioredis calls so in the words of node-redis. */
function optionsOf(options: RedisOptions): five.RedisClientOptions {
  const { path, host = '127.0.0.1', port, tls, username, password, db, protocol, keyPrefix } = options;
  const times = { connectTimeout: options.connectTimeout, socketTimeout: options.socketTimeout, reconnectStrategy: options.retryStrategy };
  const socket = path !== undefined ? { path } : { host, port, ...(tls && { tls: true, ...tls }) };
  const given = Object.fromEntries(Object.entries(times).filter(([, value]) => value !== undefined));
  return {
    socket: { ...socket, ...given } as five.RedisClientOptions['socket'],
    username,
    password,
    database: db,
    ...(protocol !== undefined && { RESP: protocol }),
    ...(keyPrefix !== undefined && { keyPrefix }),
  };
}

/**
 * Usable within a second of the server's return, as a store makes a client of its own. node-redis takes a connection for silent also when nothing is
 * sent: so this is only for tests that set a requestTimeout, and less than the time until the next try.
 */
function heals({ requestTimeout }: { requestTimeout?: number }): RedisOptions {
  const socketTimeout = requestTimeout === undefined ? undefined : 0.8 * requestTimeout;
  return { connectTimeout: requestTimeout, socketTimeout, retryStrategy: (times) => Math.min(50 * times, 500) };
}

/**
 * The same store over the client that is tested.
 *
 * @param opened is called with what has to be closed.
 */
export function storeOver(store: RedisStoreOptions, opened: (client: NodeRedisClient) => void = () => undefined): RedisStoreOptions {
  if (isIoredis) return store;
  const { options, sentinels, requestTimeout, fenceTimeout, replicaAcks } = store as OfOneServer;
  // For Sentinel and Cluster there is only ioredis.
  if (!options || sentinels || !canPrefix(options.keyPrefix)) return store;
  const client = nodeRedisClient({ ...heals(store), ...options });
  opened(client);
  return { client, requestTimeout, fenceTimeout, replicaAcks };
}

type OfOneServer = Partial<Extract<RedisStoreOptions, { sentinels: unknown }>>;

/** Version 5 has no such option: then a test of it is over ioredis. */
export function canPrefix(keyPrefix: string | undefined): boolean {
  return keyPrefix === undefined || clientName === 'node-redis-6';
}

/** A client that a test lends to a store, of the package that is tested. */
export function lentClient(options: RedisOptions, requestTimeout?: number): NodeRedisClient {
  // By itself node-redis does not connect again after a connection that was silent for too long.
  const { socketTimeout, retryStrategy } = options.socketTimeout === undefined ? ({} as RedisOptions) : heals({ requestTimeout });
  return nodeRedisClient({ ...options, socketTimeout, retryStrategy });
}

/** Closes it, whatever state it is in. */
export async function closeNodeRedis(client: NodeRedisClient): Promise<void> {
  try {
    await client.destroy();
  } catch {
    // It was closed already, or never connected.
  }
}

/** It does not keep its process alive. */
export function unreferenced(client: NodeRedisClient): void {
  if ('unref' in client) (client as { unref(): void }).unref();
}
