import type { Lock, Locks } from 'nestjs-distributed-lock/core';
import { MUTEX, semaphoreOf, sideOf, WRITE_LOCK, type Kind } from '../../contract/kinds.js';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import {
  breakInboxesAround,
  expectExclusion,
  expectWoken,
  inboxes,
  killSubscribers,
  queued,
  subscribers,
  waiterFor,
  woken,
} from './waiting.js';

const KEY = 'order:42';
const READ_LOCK = sideOf('read');
const setting = useRedis();
const fence = [`{${KEY}}:fence`];

describe('a waiter', () => {
  it('is woken by a release', async () => {
    await expectWoken(setting, setting.own(), setting.own(), KEY);
    await expectExclusion([setting.own(), setting.own()]);
  });

  it('is granted the key when the server was restarted, and the others are woken as before (G8)', async () => {
    const lost = await setting.own().acquire(KEY, woken);
    const waiting = new Set(Array.from({ length: 3 }, () => setting.own().acquire(KEY, woken)));
    await queued(setting, KEY, 3);
    await setting.server.kill();
    await setting.server.restart();
    let last = lost.fencingToken!;
    while (waiting.size > 0) {
      // In which of the stores a caller has its turn next.
      const [lease, call] = await Promise.race([...waiting].map(async (each) => [await each, each] as const));
      waiting.delete(call);
      expect(lease.fencingToken).toBeGreaterThan(last);
      last = lease.fencingToken!;
      await queued(setting, KEY, waiting.size);
      expect(await lease.release()).toBe(true);
    }
  });
});

describe('the inbox of a store', () => {
  it('opens with the first wait for another process, once, and is gone when it is closed (G7)', async () => {
    const [locks, strangers] = [setting.own(), setting.own()];
    const local = await locks.acquire('local', woken);
    const behind = locks.acquire('local', woken);
    const holders = await Promise.all(['1', '2', '3'].map((key) => strangers.acquire(key, woken)));
    expect(await locks.tryAcquire('1')).toBeNull();
    await local.release();
    await (await behind).release();
    expect([await subscribers(setting), await inboxes(setting)]).toEqual([0, []]);

    const waiting = holders.map(({ key }) => locks.acquire(key, woken));
    const fair = locks.acquire('1', { ...woken, fair: true });
    await queued(setting, '1', 2);
    await queued(setting, '3', 1);
    expect(await subscribers(setting)).toBe(1);
    expect(await inboxes(setting)).toHaveLength(1);
    await Promise.all(holders.map((holder) => holder.release()));
    await Promise.all([...waiting, fair].map(async (lease) => (await lease).release()));
    expect(await subscribers(setting)).toBe(1);
    await locks.close();
    await eventually(async () => (await subscribers(setting)) === 0 && (await inboxes(setting)).length === 0);
  });

  it('opens also when the first try at it got no answer, and does not say that waiters poll', async () => {
    const proxy = await setting.proxy();
    const logger = { warn: jest.fn(), error: jest.fn() };
    const locks = setting.locks({ options: proxy.connection, requestTimeout: 2_000 }, { logger });
    const loss = proxy.dropReplyTo((request) => /publish/i.test(request.toString('latin1', 0, 40)), { then: 'silence' });
    const passOn = await waiterFor(setting, KEY, locks, { ...woken, retryInterval: 1_000 });
    await eventually(() => loss.lost === 1);
    await eventually(() => locks.store.mutex.wakeUps!.isOpen);
    await queued(setting, KEY, 1);
    await passOn();
    expect(logger.warn).not.toHaveBeenCalledWith(expect.stringContaining('waiters cannot be woken'));
  });
});

describe('a wake-up that is lost', () => {
  const KINDS: [string, Kind, Kind, number][] = [
    ['a mutex', MUTEX, MUTEX, 1],
    ['readers behind a writer', WRITE_LOCK, READ_LOCK, 3],
    ['a writer behind a reader', READ_LOCK, WRITE_LOCK, 1],
    ['those who want permits', semaphoreOf(3, 3), semaphoreOf(3), 3],
  ];
  const lockOf = (kind: Kind, locks: Locks): Lock => kind.lockOf(locks, KEY);

  it.each(KINDS)('because the inboxes break with the release wakes all the same: %s (G8)', async (_who, held, wanted, count) => {
    const stores = Array.from({ length: count }, () => setting.own());
    for (let round = 0; round < 6; round++) {
      const holder = await lockOf(held, setting.own()).acquire(woken);
      const waiting = stores.map((locks) => lockOf(wanted, locks).acquire(woken));
      await queued(setting, KEY, count);
      await breakInboxesAround(setting, round, () => holder.release());
      for (const lease of await Promise.all(waiting)) await lease.release();
    }
    expect(await setting.keys()).toEqual(fence);
  });

  it('because the inbox breaks as soon as it listens wakes all the same (G8)', async () => {
    const passOn = await waiterFor(setting, KEY, setting.own());
    await eventually(async () => Number(await killSubscribers(setting)) > 0, { every: 1 });
    await queued(setting, KEY, 1);
    await passOn();
    expect(await setting.keys()).toEqual(fence);
  });

  it.each([
    ['before it waits has it ask at once', woken, true],
    ['while it waits costs two retryIntervals at most', { ...woken, retryInterval: 500 }, false],
  ])('since the inbox cannot come back %s (G8)', async (_what, options, isBefore) => {
    const proxy = await setting.proxy();
    const locks = setting.own(proxy.connection);
    await expectWoken(setting, setting.own(), locks, 'other');
    const breaks = async () => {
      proxy.refuse();
      await killSubscribers(setting);
      await eventually(() => !locks.store.mutex.wakeUps!.isOpen);
    };
    if (isBefore) await breaks();
    const passOn = await waiterFor(setting, KEY, locks, options);
    await queued(setting, KEY, 1);
    if (!isBefore) await breaks();
    await passOn();
  });
});
