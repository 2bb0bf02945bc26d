import { Locks, type LocksOptions, type LockStore } from 'nestjs-distributed-lock/core';
import { quorumStore, type QuorumStoreOptions } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';

/** A machine that is busy with other tests may be silent for longer than the default. */
export const patient: QuorumStoreOptions = { quarantine: 0, memberTimeout: 2_500 };
export const long = { keyTimeout: 60_000, waitTimeout: 60_000 };

/** Redis servers for all tests of a file: those that a test kills it starts again. */
export function useQuorum(count: number) {
  let servers: readonly RedisServer[] = [];
  let keys = 0;
  const ends: (() => unknown)[] = [];

  beforeAll(async () => {
    servers = await Promise.all(Array.from({ length: count }, () => startRedis()));
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  /** A store on a server, or behind a proxy. */
  const store = ({ connection }: RedisServer | TcpProxy): LockStore => redisStore({ options: connection });
  const newKey = (): string => `quorum:${++keys}`;
  return {
    store,
    newKey,
    get servers() {
      return servers;
    },
    /** Locks over a quorum of all servers, or of these stores. They are closed with the test. */
    open(quorum = patient, stores: readonly LockStore[] = servers.map(store), locksOptions?: LocksOptions): Locks {
      const locks = new Locks(quorumStore(stores, quorum), { logger: false, shutdownTimeout: 0, ...locksOptions });
      ends.push(() => locks.close());
      return locks;
    },
    /** In front of each server. */
    async proxies(): Promise<TcpProxy[]> {
      const all = await Promise.all(servers.map((server) => startProxy(server.connection)));
      ends.push(() => Promise.all(all.map((proxy) => proxy.close())));
      return all;
    },
    /** Two apps use a key one after the other and at the same time. */
    async expectLocksWork(one: Locks, other: Locks): Promise<void> {
      const key = newKey();
      const first = await one.acquire(key, long);
      expect(await other.tryAcquire(key, long)).toBeNull();
      const waiting = other.acquire(key, { ...long, retryInterval: 100 });
      await first.renew();
      expect(await first.release()).toBe(true);
      const second = await waiting;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken!);
      expect(await one.tryAcquire(key, long)).toBeNull();
      await second.release();
    },
    /** What the servers have at this name. */
    values: (name: string): Promise<(string | null)[]> =>
      Promise.all(
        servers.map((server) => {
          const client = server.client({ retryStrategy: () => null, maxRetriesPerRequest: 0 });
          return client.get(name).finally(() => client.disconnect());
        }),
      ),
    finally: (end: () => unknown) => void ends.push(end),
  };
}
