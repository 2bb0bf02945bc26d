import { LockAbortedError, LockLostError, StoreError } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { LatchArgs } from './latch.child.js';
import { latchScripts, sha1, useRedis } from './setting.js';
import { breakInboxesAround, killSubscribers } from './waiting.js';

const KEY = 'imports';
const HOUR = 3_600_000;
/** A waiter looks by itself only after the time limit of a test: without a wake-up the test fails. */
const woken = { waitTimeout: 600_000, retryInterval: 300_000 };
const setting = useRedis();

const waitersOf = async (key: string, redis = setting.redis) => (await redis.hkeys(key)).filter((field) => field.startsWith('waiter:'));
/** So many have noted at the server that they wait. */
const noted = (key: string, count: number, redis = setting.redis): Promise<boolean> =>
  eventually(async () => (await waitersOf(key, redis)).length === count, { every: 5 });

it('a wake-up that is lost because the inbox breaks with the last count wakes all the same (G8)', async () => {
  for (let round = 0; round < 9; round++) {
    const latch = setting.own().countDownLatch(KEY);
    expect(await latch.trySetCount(1)).toBe(true);
    const waiting = setting.own().countDownLatch(KEY).await(woken);
    await noted(KEY, 1);
    await breakInboxesAround(setting, round, () => latch.countDown());
    await waiting;
  }
});

describe('a request for a latch that is done, while its reply is lost', () => {
  const patient = { waitTimeout: 60_000, retryInterval: 50 };
  // So that each request is one command.
  beforeEach(async () => {
    for (const source of Object.values(latchScripts)) await setting.redis.script('LOAD', source);
  });

  it.each(['silence', 'reset'] as const)('in a %s, is repeated and done once (G6)', async (then) => {
    const proxy = await setting.proxy();
    const locks = setting.own(proxy.connection, { requestTimeout: 2_000 });
    const latch = locks.countDownLatch(KEY);
    expect(await latch.getCount()).toBe(0);
    const losses = (['trySetCount', 'countDown', 'look'] as const).map((verb) => proxy.dropReplyTo(sha1(latchScripts[verb]), { then }));
    expect(await latch.trySetCount(3, patient)).toBe(true);
    expect(await latch.countDown(patient)).toBe(2);
    expect(await latch.getCount(patient)).toBe(2);
    expect(losses.map(({ lost }) => lost)).toEqual([1, 1, 1]);
    await locks.close();
    expect(await setting.own().countDownLatch(KEY).getCount()).toBe(2);
  });

  it('is the look of a caller that gives up: its note is removed all the same (G7)', async () => {
    const proxy = await setting.proxy();
    const locks = setting.own(proxy.connection, { requestTimeout: 2_000 });
    await setting.own().countDownLatch(KEY).trySetCount(3);
    const caller = new AbortController();
    const waiting = rejection(locks.countDownLatch(KEY).await({ ...woken, signal: caller.signal }));
    await noted(KEY, 1);
    const loss = proxy.dropReplyTo(sha1(latchScripts.look), { then: 'silence' });
    await killSubscribers(setting);
    await eventually(() => loss.lost === 1);
    caller.abort();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    await noted(KEY, 0);
  });
});

describe('a server that refuses', () => {
  const as = (username: string) => ({ ...setting.server.connection, username, password: 'pass' });

  it.each([
    ['to publish', ['+@all', '-publish', '&*']],
    ['the channel', ['+@all', 'resetchannels']],
  ])('%s lets latches be counted down all the same, and waiters poll (G8)', async (_what, rules) => {
    await setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', ...rules);
    const locks = setting.own(as('app'));
    const latch = locks.countDownLatch(KEY);
    await latch.trySetCount(1);
    const waiting = [locks, setting.own()].map((each) => each.countDownLatch(KEY).await({ ...woken, retryInterval: 250 }));
    await noted(KEY, 1);
    expect(await latch.countDown()).toBe(0);
    await Promise.all(waiting);
  });

  it('a log-in that is mended since is not taken for the cause of a later silence: the call asks again (G4, G9)', async () => {
    const user = (password: string) => setting.redis.acl('SETUSER', 'app', 'reset', 'on', `>${password}`, '~*', '&*', '+@all');
    await user('other');
    const locks = setting.own(as('app'), { requestTimeout: 2_000 });
    const latch = locks.countDownLatch(KEY);
    expect(await rejection(latch.getCount())).toMatchObject({ message: expect.stringContaining('WRONGPASS') });
    await user('pass');
    await latch.trySetCount(2);
    const asks = jest.spyOn(locks.store.countDownLatch!, 'countDown');
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const counting = latch.countDown({ waitTimeout: 600_000 });
    await eventually(() => asks.mock.calls.length === 2);
    await setting.server.resume();
    expect(await counting).toBe(1);
  });
});

describe('what a latch is at the server', () => {
  it.each([
    ['hash', () => setting.redis.hset(KEY, 'count', 3)],
    ['list', () => setting.redis.rpush(KEY, 'a')],
    ['zset', () => setting.redis.zadd(KEY, 3, 'a')],
  ])('is not a %s of another program, which is left as it is', async (type, write) => {
    await write();
    const before = await setting.redis.dump(KEY);
    const latch = setting.own().countDownLatch(KEY);
    for (const call of [() => latch.trySetCount(1), () => latch.countDown(), () => latch.getCount(), () => latch.await()]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringMatching(`WRONGTYPE.*${type}`) });
    }
    expect(await setting.redis.dump(KEY)).toBe(before);
  });

  it('is one key, small however often it is counted down, that expires by itself (G7)', async () => {
    const latch = setting.own().countDownLatch(KEY);
    await latch.trySetCount(200);
    for (let done = 0; done < 100; done += 10) await Promise.all(Array.from({ length: 10 }, () => latch.countDown()));
    expect(await latch.getCount()).toBe(100);
    expect(await setting.redis.hlen(KEY)).toBeLessThanOrEqual(3 + 10);
    expect(await setting.keys()).toEqual([KEY]);
    const left = await setting.redis.pttl(KEY);
    expect(left).toBeGreaterThan(HOUR / 2);
    expect(left).toBeLessThanOrEqual(HOUR);
  });
});

it('a process that is killed while it waits for a latch holds up nobody; while it counts, it has counted what it said, or one more (G6, G7, G8)', async () => {
  const [waits, counts] = ['waits', 'counts'];
  const locks = setting.own();
  await locks.countDownLatch(waits).trySetCount(1);
  await locks.countDownLatch(counts).trySetCount(1_000_000);
  const args: LatchArgs = { connection: setting.server.connection, waits, counts, options: woken };
  const child = await setting.fork('latch.child.ts', args);
  const waiting = locks.countDownLatch(waits).await(woken);
  await noted(waits, 2);
  await eventually(async () => Number(await setting.redis.get('said')) >= 50);
  await child.kill();

  const rest = await locks.countDownLatch(counts).getCount();
  const said = Number(await setting.redis.get('said'));
  expect([said, said + 1]).toContain(1_000_000 - rest);
  expect(await locks.countDownLatch(counts).countDown()).toBe(rest - 1);
  expect(await waitersOf(waits)).toHaveLength(2);
  expect(await setting.own().countDownLatch(waits).countDown()).toBe(0);
  await waiting;
  expect(await waitersOf(waits)).toEqual([]);
});

describe('a server that is restarted while callers wait', () => {
  async function restarted(server: RedisServer) {
    const latch = setting.own(server.connection).countDownLatch(KEY);
    await latch.trySetCount(2);
    const waiting = latch.await(woken);
    waiting.catch(() => undefined);
    await noted(KEY, 1, server.client());
    await server.kill();
    return { latch, waiting };
  }

  it('without its data has lost the latch, and they reject (G8)', async () => {
    const { latch, waiting } = await restarted(setting.server);
    await setting.server.restart();
    expect(await rejection(waiting)).toBeInstanceOf(LockLostError);
    expect(await latch.trySetCount(2)).toBe(true);
  });

  it('with its data goes on counting where it was, and they wait on (G6, G8)', async () => {
    const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    setting.finally(() => server.stop());
    const { latch, waiting } = await restarted(server);
    const counting = latch.countDown({ waitTimeout: 600_000 });
    await server.restart();
    expect(await counting).toBe(1);
    // The inbox may be on its way back: a waiter that has reconnected looks at once.
    expect(await latch.countDown({ waitTimeout: 600_000 })).toBe(0);
    await waiting;
  });
});
