import { StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { endOfWait, noted } from './latches.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const KEY = 'imports';
const HOUR = 3_600_000;

describe('a server that refuses', () => {
  const setting = useRedis({ password: 'secret' });
  const as = (username: string) => ({ ...setting.server.connection, username, password: 'pass' });
  const allow = (...rules: string[]) => setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', ...rules);

  it.each([
    ['to publish', ['+@all', '-publish', '&*']],
    ['the channel', ['+@all', 'resetchannels']],
  ])('%s lets latches be counted down all the same, and those who wait look by themselves (G8)', async (_what, rules) => {
    await allow(...rules);
    const locks = setting.own(as('app'));
    const latch = locks.countDownLatch(KEY);
    await latch.trySetCount(1);
    const waiting = [
      endOfWait(locks, KEY, { waitTimeout: 60_000, retryInterval: 250 }),
      endOfWait(setting.own(), KEY, { waitTimeout: 60_000, retryInterval: 250 }),
    ];
    await noted(setting, KEY, 1);
    const start = performance.now();
    expect(await latch.countDown()).toBe(0);
    for (const end of await Promise.all(waiting)) expect(end - start).toBeLessThan(2 * 250 + SLACK);
  });

  it('a log-in that is mended since is not taken for the cause of a later silence: the call asks again (G4, G9)', async () => {
    const user = (password: string) => setting.redis.acl('SETUSER', 'app', 'reset', 'on', `>${password}`, '~*', '&*', '+@all');
    await user('other');
    const client = setting.client({ username: 'app', password: 'pass' });
    const latch = setting.locks({ client, requestTimeout: 500 }).countDownLatch(KEY);
    expect(await outcomeOf(latch.getCount())).toMatchObject({ error: { message: expect.stringContaining('WRONGPASS') } });
    await user('pass');
    await eventually(() => client.status === 'ready');
    await latch.trySetCount(2);
    await setting.server.pause();
    const counting = outcomeOf(latch.countDown({ waitTimeout: 60_000 }));
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // longer than a request may take
    await setting.server.resume();
    expect(await counting).toMatchObject({ value: 1 });
  });
});

describe('what a latch is at the server', () => {
  const setting = useRedis();

  it.each([
    ['hash', () => setting.redis.hset(KEY, 'count', 3)],
    ['list', () => setting.redis.rpush(KEY, 'a')],
    ['zset', () => setting.redis.zadd(KEY, 3, 'a')],
  ])('is told from a %s of somebody else, which is left as it is', async (type, write) => {
    await write();
    const before = await setting.redis.dump(KEY);
    const latch = setting.own().countDownLatch(KEY);
    for (const call of [() => latch.trySetCount(1), () => latch.countDown(), () => latch.getCount(), () => latch.await()]) {
      const { error } = await outcomeOf<unknown>(call());
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringMatching(`WRONGTYPE.*${type}`) });
    }
    expect(await setting.redis.dump(KEY)).toBe(before);
  });

  it('is one key, small however often it is counted down, that expires by itself (G7)', async () => {
    const latch = setting.own().countDownLatch(KEY);
    await latch.trySetCount(1_000);
    for (let done = 0; done < 500; done += 10) await Promise.all(Array.from({ length: 10 }, () => latch.countDown()));
    expect(await latch.getCount()).toBe(500);
    expect(await setting.redis.hlen(KEY)).toBeLessThanOrEqual(3 + 10);
    expect(await setting.keys()).toEqual([KEY]);
    const left = await setting.redis.pttl(KEY);
    expect(left).toBeGreaterThan(HOUR - 60_000);
    expect(left).toBeLessThanOrEqual(HOUR);
  });
});
