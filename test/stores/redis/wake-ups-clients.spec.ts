import type { Lock, Locks } from 'nestjs-distributed-lock/core';
import { makeCertificate } from '../../support/certificate.js';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import { useRedis, type Setting } from './setting.js';
import { AT_ONCE, CLIENTS, expectWoken, killSubscribers, queued, turnOf, woken } from './waiting.js';

const KEY = 'order:42';

/** Callers of several Locks add to a counter that nothing else guards. */
async function expectExclusion(stores: Locks[], options = { ...woken, retryInterval: 50 }): Promise<void> {
  let counter = 0;
  let last = 0;
  const calls = Array.from({ length: 60 }, (_, i) =>
    stores[i % stores.length]!.using(
      'count',
      async (lease) => {
        expect(lease.fencingToken).toBeGreaterThan(last);
        last = lease.fencingToken!;
        const seen = counter;
        await new Promise((resolve) => setTimeout(resolve, 1));
        counter = seen + 1;
      },
      options,
    ),
  );
  await Promise.all(calls);
  expect(counter).toBe(60);
}

describe('waiters are woken at once', () => {
  const setting = useRedis();

  it.each(CLIENTS)('over a client with %s', async (_what, options) => {
    const connection = { ...setting.server.connection, ...options };
    const prefix = options.keyPrefix ?? '';
    const observer = { ...setting, redis: setting.client({ db: options.db ?? 0 }) } as Setting;
    await expectWoken(observer, setting.own(connection), setting.borrowed(connection), KEY, prefix);
    await expectExclusion([setting.own(connection), setting.borrowed(connection)]);
  });
});

describe('waiters are woken at once over TLS', () => {
  const certificate = makeCertificate();
  const setting = useRedis({ args: certificate.args });
  afterAll(() => certificate.remove());

  it.each(['own', 'borrowed'] as const)('over the %s client of a store', async (whose) => {
    const port = await freePort();
    await setting.redis.config('SET', 'tls-port', port);
    const connection = { path: undefined, host: '127.0.0.1', port, tls: { ca: certificate.ca } };
    await expectWoken(setting, setting[whose](connection), setting[whose](connection), KEY);
  });
});

describe('waiters are woken at once', () => {
  const setting = useRedis({ port: 'free' });

  it('by a master that a sentinel names', async () => {
    const sentinel = await startSentinel({ name: 'locks', master: setting.server });
    setting.finally(() => sentinel.stop());
    const open = () => setting.locks({ sentinels: [sentinel.connection as { host: string; port: number }], name: 'locks' });
    await expectWoken(setting, open(), open(), KEY);
  });
});

describe('a client that is lent to a store', () => {
  const setting = useRedis();

  it('and cannot be duplicated has its waiters ask again and again, with a warning', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const client = Object.assign(setting.client(), {
      duplicate() {
        throw new Error('one connection is all you get');
      },
    });
    const locks = setting.locks({ client }, { logger });
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = turnOf(locks.acquire(KEY, { ...woken, retryInterval: 200 }));
    await eventually(() => expect(logger.warn).toHaveBeenCalledWith(expect.stringMatching(/poll.*one connection/s)));
    const start = performance.now();
    await holder.release();
    expect((await waiting).at - start).toBeLessThan(2 * 200 + AT_ONCE);
    await expectExclusion([locks, setting.own()]);
    expect(logger.warn).toHaveBeenCalledTimes(1);
  });
});

describe('a store whose inbox cannot come back', () => {
  const setting = useRedis();

  it('has those who begin to wait ask: they get the key at once (G8)', async () => {
    const proxy = await setting.proxy();
    const locks = setting.own(proxy.connection);
    await expectWoken(setting, setting.own(), locks, 'other');
    proxy.refuse();
    await killSubscribers(setting);
    await eventually(() => !locks.store.mutex.wakeUps!.isOpen);
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = turnOf(locks.acquire(KEY, woken));
    await queued(setting, KEY, 1);
    const start = performance.now();
    await holder.release();
    expect((await waiting).at - start).toBeLessThan(AT_ONCE);
  });
});

describe('a user who', () => {
  const setting = useRedis({ password: 'secret' });

  const rules = {
    'may not subscribe': ['+@all', '-subscribe', '&*'],
    'may not publish': ['+@all', '-publish', '&*'],
    'may use no channel': ['+@all', 'resetchannels'],
    'may use other channels': ['+@all', 'resetchannels', '&news:*'],
  };

  it.each(Object.entries(rules))('%s waits by asking, is warned once, and is excluded and served as ever', async (_what, allowed) => {
    await setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', ...allowed);
    const logger = { warn: jest.fn(), error: jest.fn() };
    const options = { ...setting.server.connection, username: 'app', password: 'pass', disconnectTimeout: 100 };
    const locks = setting.locks({ options }, { logger });
    const others = setting.own();
    await expectExclusion([locks, others]);
    for (const key of ['one', 'other']) {
      const holder = await others.acquire(key, woken);
      let waits = 0;
      const forget = locks.on('waiting', () => waits++);
      const waiting = [1, 2].map(() => turnOf(locks.acquire(key, { ...woken, retryInterval: 300 })));
      await eventually(() => waits === 2);
      forget();
      const start = performance.now();
      await holder.release();
      const { lease, at } = await waiting[0]!;
      expect(at - start).toBeLessThan(2 * 300 + AT_ONCE);
      await lease.release();
      await (await waiting[1]!).lease.release();
    }
    expect(logger.warn).toHaveBeenCalledTimes(1);
    expect(logger.warn).toHaveBeenCalledWith(expect.stringMatching(/poll.*NOPERM.*nestjs-distributed-lock:inbox/s));
    expect(logger.error).not.toHaveBeenCalled();
  });

  it.each<[string, (locks: Locks) => Lock]>([
    ['a mutex', (locks) => locks.mutex(KEY)],
    ['a write lock', (locks) => locks.readWriteLock(KEY).write],
    ['a semaphore', (locks) => locks.semaphore(KEY, { permits: 1 })],
  ])('loses it as all do who wait in order for %s, keeps that order and leaves no place behind (G7, G8)', async (_what, lockOf) => {
    await setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', '&*', '+@all');
    const locks = setting.own({ ...setting.server.connection, username: 'app', password: 'pass' });
    const holder = await lockOf(locks).acquire(woken);
    const order: number[] = [];
    const calls = [0, 1, 2].map(async (i) => {
      await queued(setting, KEY, i);
      await lockOf(locks).using(() => order.push(i), { ...woken, retryInterval: 300, fair: true });
    });
    await queued(setting, KEY, 3);
    await setting.redis.acl('SETUSER', 'app', 'resetchannels');
    await eventually(async () =>
      expect((await setting.redis.zrange(`{${KEY}}:queue`, '0', '-1')).map((place) => place.split('\n')[1])).toEqual(['', '', '']),
    );
    await holder.release();
    await Promise.all(calls);
    expect(order).toEqual([0, 1, 2]);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
