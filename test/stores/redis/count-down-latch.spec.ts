import { LockAbortedError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { endOfWait, latchShaOf, loadLatchScripts, noted, wokenByCount } from './latches.js';
import { outcomeOf, useRedis, type Setting } from './setting.js';
import { AT_ONCE, CLIENTS, killSubscribers } from './waiting.js';

const KEY = 'imports';

/** One of `waiters` waits and goes on at once when one of `others` counts down. */
async function expectWokenByCount(setting: Setting, waiters: Locks, others: Locks, key = KEY, prefix = ''): Promise<void> {
  expect(await others.countDownLatch(key).trySetCount(1)).toBe(true);
  const waiting = endOfWait(waiters, key);
  await noted(setting, prefix + key, 1);
  const start = performance.now();
  expect(await others.countDownLatch(key).countDown()).toBe(0);
  expect((await waiting) - start).toBeLessThan(AT_ONCE);
}

describe('those who wait for a latch are woken at once', () => {
  const setting = useRedis();

  it.each(CLIENTS)('over a client with %s', async (_what, options) => {
    const connection = { ...setting.server.connection, ...options };
    const observer = { ...setting, redis: setting.client({ db: options.db ?? 0 }) } as Setting;
    for (const key of [KEY, 'imports:{42}']) {
      await expectWokenByCount(observer, setting.own(connection), setting.borrowed(connection), key, options.keyPrefix);
      await expectWokenByCount(observer, setting.borrowed(connection), setting.own(connection), key, options.keyPrefix);
      expect(await setting.own(connection).countDownLatch(key).getCount()).toBe(0);
    }
    expect((await observer.redis.keys('*')).sort()).toEqual([KEY, 'imports:{42}'].map((key) => `${options.keyPrefix ?? ''}${key}`));
  });
});

describe('a wake-up that is lost', () => {
  const setting = useRedis();
  const kill = () => killSubscribers(setting);

  it.each([
    ['well before', (count: () => Promise<number>) => kill().then(count)],
    ['just before', (count: () => Promise<number>) => Promise.all([kill(), count()])],
    ['just after', (count: () => Promise<number>) => Promise.all([count(), kill()])],
  ])('because the inbox breaks %s the last count, costs no more than the reconnection (G8)', async (_when, both) => {
    for (let round = 0; round < 10; round++) {
      const latch = setting.own().countDownLatch(KEY);
      expect(await latch.trySetCount(1)).toBe(true);
      const waiting = endOfWait(setting.own(), KEY);
      await noted(setting, KEY, 1);
      const start = performance.now();
      await both(() => latch.countDown());
      expect((await waiting) - start).toBeLessThan(AT_ONCE);
    }
  });
});

describe.each(['reset', 'silence'] as const)('a request for a latch that is done, while its reply is lost in a %s', (then) => {
  const setting = useRedis();
  const patient = { waitTimeout: 15_000, retryInterval: 50 };

  it.each(['own', 'borrowed'] as const)("of the store's %s connection, is repeated and done once (G6)", async (whose) => {
    await loadLatchScripts(setting);
    const proxy = await setting.proxy();
    const healing = whose === 'own' ? {} : { socketTimeout: 700 };
    const locks = setting[whose]({ ...proxy.connection, ...healing }, { requestTimeout: 500 });
    const latch = locks.countDownLatch(KEY);
    expect(await latch.getCount()).toBe(0);
    const losses = (['trySetCount', 'countDown', 'look'] as const).map((verb) => () => proxy.dropReplyTo(latchShaOf(verb), { then }));
    const [set, count, look] = losses.map((lose) => lose());
    expect(await latch.trySetCount(3, patient)).toBe(true);
    expect(set!.lost).toBe(1);
    expect(await latch.countDown(patient)).toBe(2);
    expect(count!.lost).toBe(1);
    expect(await latch.getCount(patient)).toBe(2);
    expect(look!.lost).toBe(1);
    // What ioredis sends again by itself, of a client that is lent, comes too late to count.
    await locks.close();
    expect(await setting.own().countDownLatch(KEY).getCount()).toBe(2);
  });

  it('is the look of one who gives up: its place is left all the same (G7)', async () => {
    await loadLatchScripts(setting);
    const proxy = await setting.proxy();
    const locks = setting.own(proxy.connection, { requestTimeout: 500 });
    await setting.own().countDownLatch(KEY).trySetCount(3);
    const caller = new AbortController();
    const waiting = outcomeOf(locks.countDownLatch(KEY).await({ ...wokenByCount, signal: caller.signal }));
    await noted(setting, KEY, 1);
    const loss = proxy.dropReplyTo(latchShaOf('look'), { then });
    await killSubscribers(setting);
    await eventually(() => loss.lost === 1);
    caller.abort();
    expect((await waiting).error).toBeInstanceOf(LockAbortedError);
    await noted(setting, KEY, 0);
  });
});
