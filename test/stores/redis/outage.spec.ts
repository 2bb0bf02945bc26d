import type { RedisOptions } from 'ioredis';
import { LockLostError, Locks, StoreError, type Lease, type LocksOptions } from 'nestjs-distributed-lock/core';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../../lib/testing/store/rejection.js';
import { startCluster } from '../../support/redis-cluster.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { endOf, outcomeOf, useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 2_000;
const endless = { ...woken, retryInterval: 100 };
const setting = useRedis();
let proxy: TcpProxy;
let locks: Locks;

beforeEach(async () => {
  proxy = await setting.proxy();
  locks = setting.own(proxy.connection, { requestTimeout: REQUEST_TIMEOUT });
  setting.finally(() => proxy.heal());
});

/** Neither the open connections nor new ones. */
function down(): void {
  proxy.refuse();
  proxy.cut();
}

interface Outage {
  begin(): unknown;
  end(): unknown;
}
const PAUSE: Outage = { begin: () => setting.server.pause(), end: () => setting.server.resume() };
const OUTAGES: [string, Outage][] = [
  ['is killed and started again', { begin: () => setting.server.kill(), end: () => setting.server.restart() }],
  ['cannot be reached, nor the end of its connections be seen', { begin: () => proxy.blackhole(), end: () => proxy.heal() }],
];

/** Resolves when the call has asked in vain. */
const askedTwice = async (call: () => Promise<Lease>) => {
  const asks = jest.spyOn(locks.store.mutex, 'acquire');
  const lease = call();
  lease.catch(() => undefined);
  await eventually(() => asks.mock.calls.length > 1);
  return { lease };
};

describe('while the server', () => {
  it.each(OUTAGES)(
    '%s, a result comes through, the wait timeout ends as an outage, and an endless wait goes on (G7, G9, G10)',
    async (_, outage) => {
      const work = async () => {
        await outage.begin();
        return 'result';
      };
      expect(await locks.using(KEY, work, woken)).toBe('result');
      const body = jest.fn();
      const { error, took } = await outcomeOf(() => locks.using('other', body, { waitTimeout: 700, retryInterval: 50 }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true });
      expect(took).toBeGreaterThanOrEqual(700 - 5);
      expect(body).not.toHaveBeenCalled();
      const call = await askedTwice(() => locks.acquire(KEY, endless));
      await outage.end();
      const lease = await call.lease;
      expect(await setting.redis.get(KEY)).toBe(lease.owner);
      expect(await lease.release()).toBe(true);
    },
  );
});

describe('an outage during a hold', () => {
  it('shorter than the lease is lived through (G4)', async () => {
    const [lost, unknown] = [jest.fn(), jest.fn()];
    locks.on('lost', lost);
    locks.on('unknown', unknown);
    const lease = await locks.acquire(KEY, { keyTimeout: 12_000 });
    await PAUSE.begin();
    await eventually(() => unknown.mock.calls.length > 0);
    lease.assertHeld();
    expect(lease.signal.aborted).toBe(false);
    await PAUSE.end();
    const end = endOf(lease);
    await eventually(() => endOf(lease) > end + 100);
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    expect(await lease.release()).toBe(true);
    expect(lost).not.toHaveBeenCalled();
  });

  it('longer than the lease loses it at its real end, not sooner, and the result comes with the error (G3, G4, G10)', async () => {
    const work = async (lease: Lease): Promise<string> => {
      const loss = new Promise<unknown>((resolve) => lease.signal.addEventListener('abort', () => resolve(lease.signal.reason)));
      const start = performance.now();
      const left = lease.remaining();
      down();
      expect(await loss).toBeInstanceOf(LockLostError);
      expect(performance.now() - start).toBeGreaterThanOrEqual(left - 5);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      return 'result';
    };
    const error = await rejection(locks.using(KEY, work, { keyTimeout: 5_000 }));
    expect(error).toBeInstanceOf(LockLostError);
    expect((error as LockLostError).result).toBe('result');
  });

  it('in which the server forgets everything is a loss, by renewal and by release, and the next token is larger all the same (G2, G3)', async () => {
    const renewed = await locks.acquire('renewed', { keyTimeout: 5_000 });
    const released = await locks.acquire('released', woken);
    await setting.server.restart();
    await eventually(() => renewed.signal.aborted);
    expect(() => renewed.assertHeld()).toThrow(LockLostError);
    for (const before of [renewed, released]) {
      expect(await before.release()).toBe(false);
      const next = await locks.acquire(before.key, woken);
      expect(next.fencingToken).toBeGreaterThan(before.fencingToken!);
      await next.release();
    }
  });
});

describe('a connection', () => {
  it('that has gone silent for good, while the server can be reached, is replaced (G9)', async () => {
    await locks.using('warm-up', () => undefined, woken);
    const losses = ['EVALSHA', 'evalsha'].map((command) => proxy.dropReplyTo(command, { then: 'silence' }));
    const lease = await locks.acquire(KEY, woken);
    expect(losses[0]!.lost + losses[1]!.lost).toBe(1);
    expect(await lease.release()).toBe(true);
  });

  it('that has ended by itself is made again, as ioredis does not when Sentinel announces a failover while it connects', async () => {
    locks = setting.own({ ...proxy.connection, retryStrategy: () => null }, { requestTimeout: REQUEST_TIMEOUT });
    await locks.using('warm-up', () => undefined, woken);
    down();
    const call = await askedTwice(() => locks.acquire(KEY, endless));
    await proxy.heal();
    await (await call.lease).release();
  });
});

function open(store: RedisStoreOptions, options: LocksOptions = {}) {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { warn: write('warn'), error: write('error'), log: write('log') };
  const opened = new Locks(redisStore({ requestTimeout: REQUEST_TIMEOUT, ...store }), { logger, shutdownTimeout: 0, ...options });
  setting.finally(() => opened.close());
  return { locks: opened, lines };
}
const use = ({ locks: opened }: { locks: Locks }) => opened.using('key', () => 5, woken);
const AWAY = /^warn Redis does not answer since \d{4}-\d\d-\d\dT[\d:.]+Z: .+; locks wait \[NDL_STORE_AWAY\]$/;
const BACK = /^warn Redis answers again after (\d+ ms|\d+(\.\d)? s) \[NDL_STORE_BACK\]$/;

describe('the log', () => {
  it.each<[string, (options: object) => RedisStoreOptions]>([
    ['of its own client', (options) => ({ options })],
    ['of a client that is lent to it', (options) => ({ client: setting.client(options) })],
  ])('names a server that goes away once, also while nothing is held, and once when it is back: a store %s', async (_whose, storeOf) => {
    const opened = open(storeOf(proxy.connection));
    await use(opened);
    down();
    await eventually(() => opened.lines.length > 0);
    await staysTrue(() => expect(opened.lines).toEqual([expect.stringMatching(AWAY)]), 500);
    expect(opened.lines[0]).toMatch(/Z: connect ECONNREFUSED .+; locks wait \[NDL_STORE_AWAY\]$/);
    await proxy.heal();
    await eventually(() => opened.lines.length > 1);
    await use(opened);
    await staysTrue(() => expect(opened.lines.slice(1)).toEqual([expect.stringMatching(BACK)]));
  });

  it('names a server that is silent on connections that stay open, of a client that nobody watches', async () => {
    const opened = open({ client: setting.client(proxy.connection) });
    await use(opened);
    await PAUSE.begin();
    setting.finally(() => PAUSE.end());
    expect(await rejection(opened.locks.acquire('key', { waitTimeout: 0 }))).toBeInstanceOf(StoreError);
    await eventually(() => expect(opened.lines).toEqual([expect.stringMatching(AWAY)]));
    await PAUSE.end();
    await eventually(() => opened.lines.length > 1);
    await use(opened);
    await staysTrue(() => expect(opened.lines.slice(1)).toEqual([expect.stringMatching(BACK)]));
  });

  it('does not name a connection that breaks while it is idle and is back, nor one that is closed', async () => {
    const opened = open({ options: proxy.connection });
    const client = setting.client();
    const lent = open({ client });
    for (const each of [opened, lent]) await use(each);
    proxy.cut();
    await client.quit();
    await use(opened);
    await opened.locks.close();
    await staysTrue(() => expect([...opened.lines, ...lent.lines]).toEqual([]), REQUEST_TIMEOUT + 500);
  });
});

describe('the check of a store', () => {
  const checked = async (store: RedisStoreOptions, name?: string) => {
    const opened = open(store);
    const { error } = await outcomeOf(opened.locks.checkStore(name));
    return { ...opened, error };
  };
  const ANSWERS = /^log Store "orders": (Redis|Valkey) \d+\.\d+\.\d+ at \S+\/0 answers in \d+ ms; waiters are woken$/;

  it('says which server answers, what it can do, and whether it evicts locks, and leaves nothing behind', async () => {
    expect((await checked({ options: setting.server.connection }, 'orders')).lines).toEqual([expect.stringMatching(ANSWERS)]);
    await setting.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    setting.finally(() => setting.redis.config('SET', 'maxmemory-policy', 'noeviction'));
    const { lines, error } = await checked({ options: setting.server.connection }, 'orders');
    expect(error).toBeUndefined();
    expect(lines).toEqual([
      expect.stringMatching(ANSWERS),
      expect.stringMatching(/^warn Store "orders": maxmemory-policy: allkeys-lru\. CONFIG SET maxmemory-policy noeviction/),
    ]);
    expect(await setting.keys()).toEqual([]);
  });

  it('says no version to a user who may not ask for it, and nothing else', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~shop:*', '~{shop:*', 'resetchannels', '+@all', '-info');
    const options = { ...setting.server.connection, username: 'shop', password: 'secret', enableReadyCheck: false };
    const { locks: opened, lines } = open({ options }, { namespace: 'shop:' });
    await opened.checkStore();
    expect(lines).toEqual([expect.stringMatching(/^log Redis at \S+\/0, namespace "shop:", answers in \d+ ms; waiters are woken$/)]);
  });

  it('names what a user may not do, in one line each', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~*', '+@all');
    await setting.redis.acl('SETUSER', 'reports', 'on', '>secret', '~reports:*', '+@all');
    const users = [
      { username: 'shop', password: 'wrong' },
      { username: 'reports', password: 'secret' },
    ];
    const opened = await Promise.all(users.map((user) => checked({ options: { ...setting.server.connection, ...user } })));
    await setting.redis.config('SET', 'requirepass', 'secret');
    setting.finally(() => setting.redis.config('SET', 'requirepass', ''));
    opened.push(await checked({ options: setting.server.connection }));
    for (const { error } of opened) expect(error).toMatchObject({ name: 'StoreError', transient: false });
    const refused = (why: string) => [expect.stringMatching(new RegExp(`^warn Redis refuses requests: ${why} .+`))];
    await staysTrue(() => {
      expect(opened.map(({ lines }) => lines)).toEqual([refused('WRONGPASS'), refused('NOPERM'), refused('NOAUTH')]);
    }, REQUEST_TIMEOUT + 500);
    expect(opened[0]!.lines[0]).toMatch(/: WRONGPASS [^.]+\. Check the user and the password \[NDL_STORE_REFUSES\]$/);
  });

  it.each([
    ['replica', /^It is a replica: use the address of the master, or sentinels/],
    ['node of a Cluster that has the key of the check', /^It is a node of a Cluster: redisStore/],
    ['node of a Cluster that has not', /^MOVED .+\. It is a node of a Cluster: redisStore/],
  ])('is a refusal by a %s, and no key is granted', async (what, reason) => {
    let options: RedisOptions = setting.server.connection;
    if (what === 'replica') {
      setting.finally(() => setting.redis.replicaof('NO', 'ONE'));
      await setting.redis.replicaof('127.0.0.1', 1);
    } else {
      const cluster = await startCluster({ masters: 2 });
      setting.finally(() => cluster.stop());
      options = cluster.nodes[what.endsWith('not') ? 0 : 1]!.connection;
    }
    const { lines, error, locks: refused } = await checked({ options, requestTimeout: 5_000 }, 'orders');
    const start = 'warn Store "orders": Redis refuses requests: ';
    expect(error).toMatchObject({ name: 'StoreError', isRefusal: true });
    expect(lines).toEqual([expect.stringContaining(start)]);
    expect(lines[0]!.slice(start.length)).toMatch(reason);
    expect(await refused.health()).toMatchObject({ isUp: false });
    // Some of them belong to this node.
    const keys = Array.from({ length: 8 }, (_, i) => `key:${i}`);
    const unknown = jest.fn();
    refused.on('unknown', unknown);
    for (const key of keys) {
      const refusal = await rejection(refused.acquire(key, { waitTimeout: 0 }));
      expect(refusal).toBeInstanceOf(StoreError);
      // A replica may be the master soon.
      if (what !== 'replica') expect(refusal).toMatchObject({ isRefusal: true, isUnsent: true });
    }
    await refused.close();
    // Nothing was taken, so that there is nothing to release.
    if (what !== 'replica') expect(unknown).not.toHaveBeenCalled();
  });

  it('names a server that cannot be reached in one line, and its return', async () => {
    proxy.refuse();
    const opened = await checked({ options: proxy.connection });
    expect(opened.error).toMatchObject({ transient: true });
    const away =
      /^warn Redis cannot be reached: Redis is not connected within \d+ ms \(.+\); locks wait until it answers \[NDL_STORE_AWAY\]$/;
    await staysTrue(() => expect(opened.lines).toEqual([expect.stringMatching(away)]), 500);
    await proxy.heal();
    await use(opened);
    await eventually(() => expect(opened.lines.slice(1)).toEqual([expect.stringMatching(BACK)]));
  });
});
