import { Redis, type RedisOptions } from 'ioredis';
import { Redis as Five } from 'ioredis-v5';
import { type Lease, Locks, StoreError } from 'nestjs-distributed-lock/core';
import { type NodeRedisClient, type RedisClient, redisStore } from 'nestjs-distributed-lock/redis';
import * as five from 'redis';
import * as six from 'redis-v6';
import { rejection } from '../../../lib/testing/store/rejection.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { startCluster } from '../../support/redis-cluster.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { usesEveryVerb } from './every-verb.js';
import { endOf, useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const setting = useRedis();

const VERSIONS: [string, typeof Redis][] = [
  ['5', Five as unknown as typeof Redis],
  ['6', Redis],
];

describe.each(VERSIONS)('a lent client of ioredis %s that connects again after each error reply', (_, Client) => {
  /** @param again what `reconnectOnError` returns; 2: it sends the refused command once more. */
  function lent(again: boolean | 2, options: RedisOptions = {}) {
    const client = new Client({ ...setting.server.connection, retryStrategy: () => 50, reconnectOnError: () => again, ...options });
    client.on('error', () => undefined);
    setting.finally(() => client.disconnect());
    const breaks = jest.fn();
    client.on('reconnecting', breaks);
    return { client, breaks, locks: setting.overIoredis({ client, requestTimeout: 5_000 }) };
  }

  it.each([true, 2] as const)('(%s) gets each kind of lock, also of a server that was killed and started again', async (again) => {
    await setting.redis.script('FLUSH');
    const [mine, theirs] = [lent(again), lent(again)];
    await usesEveryVerb(mine.locks, theirs.locks, KEY);
    for (const { breaks } of [mine, theirs]) expect(breaks).not.toHaveBeenCalled();
    await setting.server.kill();
    await setting.server.restart();
    await eventually(() => [mine, theirs].every(({ client }) => client.status === 'ready'));
    for (const { breaks } of [mine, theirs]) breaks.mockClear();
    await usesEveryVerb(mine.locks, theirs.locks, KEY);
    for (const { breaks } of [mine, theirs]) expect(breaks).not.toHaveBeenCalled();
  });

  it('gets a lock at the first try when the server has forgotten its scripts', async () => {
    const { locks, breaks } = lent(true, { enableOfflineQueue: false });
    await locks.using(KEY, () => undefined, woken);
    await setting.redis.script('FLUSH');
    const lease = await locks.tryAcquire(KEY);
    expect(lease?.key).toBe(KEY);
    expect(await lease!.release()).toBe(true);
    expect(breaks).toHaveBeenCalledTimes(1);
  });

  it('is refused as that of one node of a Cluster, also over the connection that it opens because of that', async () => {
    const cluster = await startCluster({ masters: 2 });
    setting.finally(() => cluster.stop());
    const [node, other] = cluster.masters;
    const { locks, client } = lent(true, { path: undefined, ...node!.connection });
    // Asked as soon as it is there: a moment later the new connection has said itself what it leads to.
    const isBack = new Promise((resolve) => client.once('close', () => client.once('ready', resolve)));
    const [[here], [there]] = [cluster.keysOn(node!, 1), cluster.keysOn(other!, 1)];
    const refused = { transient: false, isRefusal: true, message: expect.stringContaining('It is a node of a Cluster') };
    expect(await rejection(locks.acquire(there!, { waitTimeout: 0 }))).toMatchObject(refused);
    await isBack;
    expect(await rejection(locks.acquire(here!, { waitTimeout: 0 }))).toMatchObject(refused);
    expect(await client.exists(here!)).toBe(0);
  });

  it('renews the other keys of a request that is refused for one of them', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~*', '&*', '+@all');
    const { locks } = lent(true, { username: 'shop', password: 'secret' });
    const leases = await Promise.all(['shop:1', 'other:1'].map((key) => locks.acquire(key, woken)));
    await setting.redis.acl('SETUSER', 'shop', 'resetkeys', '~shop:*', '~{shop:*');
    const [mine, refused] = await Promise.allSettled(leases.map((lease) => lease.renew(400_000)));
    expect(mine).toMatchObject({ status: 'fulfilled' });
    expect(refused).toMatchObject({ status: 'rejected' });
    await setting.redis.acl('SETUSER', 'shop', 'allkeys');
    for (const lease of leases) expect(await lease.release()).toBe(true);
  });
});

/** What the app asks over its client all the time. */
interface App {
  client: RedisClient | NodeRedisClient;
  /** Never rejects. */
  set(key: string): Promise<unknown>;
  select(db: number): Promise<unknown>;
  isOpen(): boolean;
}

function overIoredis(Client: typeof Redis, proxy: TcpProxy, options: RedisOptions = {}): App {
  const client = new Client({ ...proxy.connection, ...options });
  client.on('error', () => undefined);
  setting.finally(() => client.disconnect());
  const set = (key: string) => client.set(key, 1).catch(() => undefined);
  // With a commandTimeout it may be too late on a busy machine.
  const select = (db: number) => eventually(() => client.select(db).catch(() => false));
  return { client, set, select, isOpen: () => client.status === 'ready' };
}

function overNodeRedis({ createClient }: typeof five, proxy: TcpProxy): App {
  const client = createClient({ socket: { ...proxy.connection, socketTimeout: 1_600, reconnectStrategy: () => 50 } });
  client.on('error', () => undefined);
  setting.finally(() => client.isOpen && client.destroy());
  const set = (key: string) => client.set(key, 1).catch(() => undefined);
  const connected = async (db: number) => {
    await client.connect();
    await client.select(db);
  };
  return { client: client, set, select: connected, isOpen: () => client.isOpen };
}

const CLIENTS: ((proxy: TcpProxy) => App)[] = [
  (proxy) => overIoredis(Five as unknown as typeof Redis, proxy),
  (proxy) => overIoredis(Redis, proxy),
  (proxy) => overIoredis(Redis, proxy, { commandTimeout: 500 }),
  (proxy) => overNodeRedis(five, proxy),
  (proxy) => overNodeRedis(six as unknown as typeof five, proxy),
];

describe('a lent client of ioredis 5 or 6, or node-redis 5 or 6, over which the app writes all the time, and whose connection', () => {
  /** Each of them has a store and a key of its own. */
  function open(proxy: TcpProxy) {
    return CLIENTS.map((make, index) => {
      const app = make(proxy);
      const logger = { warn: jest.fn(), error: jest.fn() };
      const locks = setting.overIoredis({ client: app.client, requestTimeout: 2_000 }, { logger });
      const lost = jest.fn();
      locks.on('lost', lost);
      let isOver = false;
      setting.finally(() => (isOver = true));
      void eventually(() => (void app.set('app'), isOver), { every: 50 });
      const lines = () => logger.warn.mock.calls.map(([line]) => String(line)).filter((line) => line.includes('NDL_CLIENT_SILENT'));
      return { app, locks, key: `order:${index}`, lost, lines };
    });
  }

  it('goes silent for good, three times, is replaced by a duplicate: no lease is lost, the next locks are granted, and one line says so (G4, G9)', async () => {
    const proxy = await setting.proxy();
    const before = open(proxy).map(async (opened) => {
      await usesEveryVerb(opened.locks, setting.own(), `${opened.key}:before`);
      return { ...opened, lease: await opened.locks.acquire(opened.key, { keyTimeout: 20_000 }) };
    });
    const all = await Promise.all(before);
    // Also the duplicate that replaces the client, and the next connection of that.
    for (let round = 0; round < 3; round++) {
      proxy.silence();
      const after = all.map(async ({ locks, key, lease }) => {
        await usesEveryVerb(locks, setting.own(), `${key}:after`);
        const end = endOf(lease);
        await eventually(() => endOf(lease) > end + 100);
        lease.assertHeld();
        expect(await setting.redis.get(key)).toBe(lease.owner);
      });
      await Promise.all(after);
    }
    for (const { lease } of all) expect(await lease.release()).toBe(true);
    for (const { app, locks, lost, lines } of all) {
      expect(lost).not.toHaveBeenCalled();
      expect(lines()).toEqual([expect.stringMatching(/^Redis has answered nothing for \d.* over the client that the store was given/)]);
      await locks.close();
      expect(app.isOpen()).toBe(true);
    }
    await eventually(() => expect(proxy.connections).toBe(all.length));
  });

  it('goes silent is replaced also after the store was closed and used again, and the listeners of the store are gone after its next close', async () => {
    const proxy = await setting.proxy();
    const client = setting.client(proxy.connection);
    const before = client.listenerCount('close');
    const store = redisStore({ client, requestTimeout: 2_000 });
    const first = new Locks(store, { logger: false });
    await first.using(KEY, () => undefined, woken);
    await first.close();
    const second = new Locks(store, { logger: false });
    setting.finally(() => second.close());
    await second.using(KEY, () => undefined, woken);
    const broke = jest.fn();
    store.onTrouble!(broke);
    proxy.cut();
    // Also while nothing is asked.
    await eventually(() => expect(broke).toHaveBeenCalledTimes(1));
    await second.using(KEY, () => undefined, woken);
    for (let round = 0; round < 3; round++) {
      proxy.silence();
      await second.using(KEY, () => undefined, { ...woken, retryInterval: 100 });
    }
    await second.close();
    expect(client.listenerCount('close')).toBe(before);
    await eventually(() => expect(proxy.connections).toBe(1));
  });

  it('goes silent is waited for where it cannot make a duplicate, and its waiters poll', async () => {
    const proxy = await setting.proxy();
    const client = setting.client(proxy.connection);
    // Jest fails where nobody catches it.
    client.duplicate = () => {
      throw new Error('no duplicates');
    };
    const logger = { warn: jest.fn(), error: jest.fn() };
    const locks = setting.overIoredis({ client, requestTimeout: 2_000 }, { logger });
    const lease = await setting.own().acquire(KEY, woken);
    const waiting = locks.acquire(KEY, { ...woken, retryInterval: 100 });
    await eventually(() => expect(logger.warn.mock.calls).toEqual([[expect.stringMatching(/poll instead: no duplicates/)]]));
    proxy.silence();
    for (let i = 0; i < 3; i++) expect(await rejection(locks.tryAcquire('other'))).toBeInstanceOf(StoreError);
    expect(await lease.release()).toBe(true);
    proxy.cut();
    expect(await (await waiting).release()).toBe(true);
    expect(JSON.stringify(logger.warn.mock.calls)).not.toContain('NDL_CLIENT_SILENT');
  });

  it('goes silent because the server hangs is not replaced', async () => {
    const all = open(await setting.proxy());
    for (const { locks, key } of all) await locks.using(key, () => undefined, woken);
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const refused = all.map(async ({ locks, key }) => {
      for (let i = 0; i < 3; i++) expect(await rejection(locks.acquire(key, { waitTimeout: 0 }))).toBeInstanceOf(StoreError);
    });
    await Promise.all(refused);
    await setting.server.resume();
    for (const { locks, key } of all) await locks.using(key, () => undefined, woken);
    await staysTrue(() => expect(all.flatMap(({ lines }) => lines())).toEqual([]), 2_500); // more than a requestTimeout
  });

  it('goes silent in another database is replaced by one in the same', async () => {
    const proxy = await setting.proxy();
    const all = open(proxy);
    await Promise.all(all.map(({ app }) => app.select(1)));
    for (const { locks, key } of all) await locks.using(key, () => undefined, woken);
    for (let round = 0; round < 3; round++) {
      proxy.silence();
      const leases = await Promise.all(all.map(({ locks }, index) => locks.acquire(`next:${index}`, { ...woken, retryInterval: 100 })));
      await areInDatabase1(leases);
    }
    // Operators find it where it was.
    const { bus } = setting.own().store;
    const heard = jest.fn();
    await bus!.open(() => undefined);
    await bus!.listen('ops', heard);
    for (const [index, { locks }] of all.entries()) {
      const place = (await locks.store.doctor!.checks('')).find(({ id }) => id === 'place');
      expect(place).toMatchObject({ seen: `at 127.0.0.1:${proxy.port}/1` });
      await locks.store.bus!.publish('ops', String(index));
    }
    await eventually(() => expect(heard).toHaveBeenCalledTimes(all.length));
  });
});

it('a lent client of ioredis is not replaced by one whose SELECT is refused, which would go on in database 0', async () => {
  await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~*', '&*', '+@all');
  const proxy = await setting.proxy();
  const client = setting.client({ ...proxy.connection, username: 'shop', password: 'secret', db: 1 });
  const locks = setting.overIoredis({ client, requestTimeout: 2_000 });
  await locks.using(KEY, () => undefined, woken);
  await setting.redis.acl('SETUSER', 'shop', '-select');
  proxy.silence();
  for (let i = 0; i < 4; i++) expect(await rejection(locks.tryAcquire(KEY))).toBeInstanceOf(StoreError);
  await setting.redis.acl('SETUSER', 'shop', '+select');
  await areInDatabase1([await locks.acquire(KEY, { ...woken, retryInterval: 100 })]);
});

/** They are held there, and there only, and are released. */
async function areInDatabase1(leases: Lease[]): Promise<void> {
  const redis = setting.client({ db: 1 });
  for (const lease of leases) {
    expect(await redis.get(lease.key)).toBe(lease.owner);
    expect(await setting.redis.exists(lease.key)).toBe(0);
    expect(await lease.release()).toBe(true);
  }
}

/** The request by which a store asks for the database. */
const asksForDatabase = (request: Buffer): boolean => request.includes('CLIENT\r\n$4\r\nINFO');

describe('lent clients of node-redis 5 and 6 in another database than that of their options', () => {
  const each = (options: five.RedisClientOptions = {}) =>
    Promise.all(
      [five, six as unknown as typeof five].map(async ({ createClient }, index) => {
        const proxy = await setting.proxy();
        const client = createClient({ ...options, socket: { ...proxy.connection, reconnectStrategy: () => 50 } });
        client.on('error', () => undefined);
        setting.finally(() => client.isOpen && client.destroy());
        await client.connect();
        await client.select(1);
        const logger = { warn: jest.fn(), error: jest.fn() };
        const locks = setting.overIoredis({ client, requestTimeout: 2_000 }, { logger });
        const lines = () => logger.warn.mock.calls.map(([line]) => String(line)).filter((line) => line.includes('NDL_CLIENT_SILENT'));
        const acquire = () => locks.acquire(`order:${index}`, { ...woken, retryInterval: 100 });
        await (await acquire()).release();
        return { proxy, acquire, fails: () => rejection(locks.tryAcquire(KEY)), lines };
      }),
    );

  it('whose next connection is silent from the start are replaced by one in the same database', async () => {
    const all = (await each()).map(async ({ proxy, acquire, lines }) => {
      const loss = proxy.dropReplyTo(asksForDatabase, { then: 'silence' });
      proxy.cut();
      await areInDatabase1([await acquire()]);
      expect(loss.lost).toBe(1);
      expect(lines()).toHaveLength(1);
    });
    await Promise.all(all);
  });

  it('which the server does not tell stay when they go silent, and one line says why', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~*', '&*', '+@all', '-client|info');
    const all = (await each({ username: 'shop', password: 'secret' })).map(async ({ proxy, acquire, fails, lines }) => {
      proxy.silence();
      await eventually(async () => {
        expect(await fails()).toBeInstanceOf(StoreError);
        expect(lines()).not.toEqual([]);
      });
      for (let i = 0; i < 2; i++) expect(await fails()).toBeInstanceOf(StoreError);
      expect(lines()).toEqual([expect.stringMatching(/^Redis has answered nothing for \d.* allow the user CLIENT INFO/)]);
      proxy.cut();
      await areInDatabase1([await acquire()]);
    });
    await Promise.all(all);
  });
});
