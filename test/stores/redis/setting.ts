import type { Redis, RedisOptions } from 'ioredis';
import { Locks, type Lease, type LockStore, type LocksOptions } from 'nestjs-distributed-lock/core';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { createHash } from 'node:crypto';
import { lua } from '../../../lib/stores/redis/scripts/redis.script.js';
import { forkChild, type Child, type ChildMessage } from '../../support/child.js';
import { startRedis, type RedisServer, type StartRedisOptions } from '../../support/redis-server.js';
import { storeOver } from '../../support/redis-clients.js';
import { startProxy, type ProxyTarget, type TcpProxy } from '../../support/tcp-proxy.js';

/** Milliseconds, where a test says nothing else: long enough for a machine that is busy with other things. */
export const REQUEST_TIMEOUT = 5_000;

export type StoreOptions = Partial<Pick<RedisStoreOptions, 'requestTimeout' | 'fenceTimeout' | 'replicaAcks'>>;

/** A server for all tests of a file, empty before each, and whatever a test opens until the test ends. */
export interface Setting {
  readonly server: RedisServer;
  /** a connection of the test's own, which no fault touches */
  readonly redis: Redis;
  /** before the server of the setting, unless another is given */
  proxy(target?: ProxyTarget): Promise<TcpProxy>;
  /** a client that the test lends to a store */
  client(options?: RedisOptions): Redis;
  locks(store: RedisStoreOptions, options?: LocksOptions): Locks;
  /** Over ioredis, whichever package is tested. */
  overIoredis(store: RedisStoreOptions, options?: LocksOptions): Locks;
  /** Locks over a client of the store's own. */
  own(connection?: RedisOptions, store?: StoreOptions): Locks;
  fork<M extends ChildMessage>(script: string, args: object): Promise<Child<M>>;
  /** Calls this when the test has ended, before all that was opened earlier is closed. */
  finally(end: () => unknown): void;
  /** The names of all keys, sorted. */
  keys(pattern?: string): Promise<string[]>;
}

export function useRedis(options?: StartRedisOptions): Setting {
  let server: RedisServer;
  let redis: Redis;
  const ends: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await startRedis(options);
    redis = server.client();
  });
  afterAll(() => server.stop());
  beforeEach(() => redis.flushall());
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const setting: Setting = {
    get server() {
      return server;
    },
    get redis() {
      return redis;
    },
    async proxy(target = server.connection) {
      const proxy = await startProxy(target);
      ends.push(() => proxy.close());
      return proxy;
    },
    client(clientOptions = {}) {
      const client = server.client(clientOptions.port === undefined ? clientOptions : { ...clientOptions, path: undefined });
      ends.push(() => client.disconnect());
      return client;
    },
    locks: (store, locksOptions) => setting.overIoredis(storeOver(store), locksOptions),
    overIoredis(store, locksOptions) {
      const locks = new Locks(redisStore(store), { logger: false, shutdownTimeout: 0, ...locksOptions });
      ends.push(() => locks.close());
      return locks;
    },
    own: (connection = server.connection, store) =>
      setting.locks({ options: connection, ...store, requestTimeout: store?.requestTimeout ?? REQUEST_TIMEOUT }),
    async fork<M extends ChildMessage>(script: string, args: object) {
      const child = await forkChild<M>(`test/stores/redis/${script}`, { args: [JSON.stringify(args)] });
      ends.push(() => child.kill().catch(() => child.exit)); // it may be ending by itself
      return child;
    },
    finally: (end) => void ends.push(end),
    keys: async (pattern = '*') => (await redis.keys(pattern)).sort(),
  };
  return setting;
}

/** The client that a store uses, of ioredis or like one. */
export function clientOf({ store }: { store: LockStore }): Redis {
  return (store.mutex.wakeUps as unknown as { redis: { client: Redis } }).redis.client;
}

export const latchScripts = {
  trySetCount: lua('count-down-latch/try-set-count'),
  countDown: lua('count-down-latch/count-down'),
  look: lua('count-down-latch/look'),
  leave: lua('count-down-latch/leave'),
};

const VERBS = ['acquire', 'release', 'renew', 'extend', 'adopt', 'check'] as const;
/** As a store sends it by default. */
const sourceOf = (verb: (typeof VERBS)[number]): string => lua(`mutex/${verb}`, 3_600_000);

/** The name by which the server knows a script. */
export const sha1 = (source: string): string => createHash('sha1').update(source).digest('hex');
export const shaOf = (verb: 'acquire' | 'renew' | 'release'): string => sha1(sourceOf(verb));

/** So that each request is one command, and none is asked again with the script's text. */
export async function loadScripts(redis: Redis, verbs: readonly (typeof VERBS)[number][] = VERBS): Promise<void> {
  for (const verb of verbs) await redis.script('LOAD', sourceOf(verb));
}

/** What the server has refused to users since ACL LOG RESET: commands, keys and channels. */
export async function refusedBy(redis: Redis): Promise<string[]> {
  const entries = (await redis.acl('LOG')) as string[][];
  const objects = entries.map((entry) => String(entry[entry.indexOf('object') + 1]));
  // ioredis tells its name to Redis 7.2 and later, and goes on where it may not.
  return objects.filter((object) => object !== 'client|setinfo');
}

/** Until when the lease claims to be held: grows with each renewal. */
export function endOf(lease: Lease): number {
  return performance.now() + lease.remaining();
}

/** How a call ended, and when. */
export interface Outcome<T> {
  value?: T;
  error?: unknown;
  /** milliseconds */
  took: number;
}

/**
 * Never rejects.
 *
 * @param call a function where `took` matters: then the clock is read before the call is sent.
 */
export async function outcomeOf<T>(call: PromiseLike<T> | (() => PromiseLike<T>)): Promise<Outcome<T>> {
  const start = performance.now();
  try {
    const value = await (typeof call === 'function' ? call() : call);
    return { value, took: performance.now() - start };
  } catch (error) {
    return { error, took: performance.now() - start };
  }
}
