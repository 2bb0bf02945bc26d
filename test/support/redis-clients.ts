import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { NodeRedisClient, RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import * as five from 'redis';
import * as six from 'redis-v6';

/** The package over which stores are tested: `ioredis` where nothing is said. */
export type ClientName = 'ioredis' | 'node-redis' | 'node-redis-6';
export const clientName = (process.env.REDIS_CLIENT ?? 'ioredis') as ClientName;
export const isIoredis = clientName === 'ioredis';

/** Milliseconds. */
const LONGEST_CONNECT = 2_000;

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
  const client = clientOf(store);
  if (!client) return store;
  opened(client);
  const { requestTimeout, fenceTimeout, replicaAcks } = store;
  return { client, requestTimeout, fenceTimeout, replicaAcks };
}

interface Place {
  host: string;
  port: number;
}

interface Form {
  options?: RedisOptions;
  sentinels?: RedisOptions[];
  cluster?: unknown[];
  clusterOptions?: ClusterOptions;
  name?: string;
  requestTimeout?: number;
}

function clientOf(store: Form): NodeRedisClient | undefined {
  const { options, sentinels, cluster, clusterOptions, name } = store;
  const keyPrefix = options?.keyPrefix ?? clusterOptions?.keyPrefix;
  if (!canPrefix(keyPrefix)) return undefined;
  if (options && !sentinels) return nodeRedisClient({ ...heals(store), ...options });
  if (sentinels) {
    const nodeClientOptions = optionsOf({ ...heals(store), ...options });
    return silenced(
      nodeRedis.createSentinel({ name: name!, sentinelRootNodes: sentinels as { host: string; port: number }[], nodeClientOptions }),
    );
  }
  if (cluster) {
    const more = { nodeAddressMap: clusterOptions?.natMap as never, ...(keyPrefix !== undefined && { keyPrefix }) };
    return nodeRedisCluster(cluster as Place[], { defaults: optionsOf(heals(store)), ...more });
  }
  return undefined;
}

/** It is not connected yet. */
export function nodeRedisCluster(nodes: readonly Place[], options: Partial<five.RedisClusterOptions> = {}): NodeRedisClient {
  const rootNodes = nodes.map((socket) => ({ socket }));
  return silenced(nodeRedis.createCluster({ rootNodes, ...options }) as NodeRedisClient);
}

/** Version 5 has no such option: then a test of it is over ioredis. */
export function canPrefix(keyPrefix: string | undefined): boolean {
  return keyPrefix === undefined || clientName === 'node-redis-6';
}

/** What has not ended of `connect`. */
const connecting = new WeakMap<NodeRedisClient, Promise<unknown>>();

function silenced<T extends NodeRedisClient>(client: T): T {
  client.on('error', () => undefined);
  const connect: () => Promise<unknown> = client.connect.bind(client);
  const watched = (): Promise<unknown> => {
    const promise = connect();
    connecting.set(client, promise);
    const ended = (): boolean => connecting.delete(client);
    promise.then(ended, ended);
    return promise;
  };
  return Object.assign(client, { connect: watched });
}

/** A client that a test lends to a store, of the package that is tested. */
export function lentClient(options: RedisOptions, requestTimeout?: number): NodeRedisClient {
  // By itself node-redis does not connect again after a connection that was silent for too long.
  const { socketTimeout, retryStrategy } = options.socketTimeout === undefined ? ({} as RedisOptions) : heals({ requestTimeout });
  return nodeRedisClient({ ...options, socketTimeout, retryStrategy });
}

/** Closes it, whatever state it is in. A cluster that is destroyed while it connects would leave the clients of its nodes open. */
export async function closeNodeRedis(client: NodeRedisClient): Promise<void> {
  try {
    // Not for ever: its nodes may hang.
    await Promise.race([connecting.get(client), pause(LONGEST_CONNECT, undefined, { ref: false })]);
  } catch {
    // It has left nothing open.
  }
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
