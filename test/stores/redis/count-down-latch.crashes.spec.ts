import { LockLostError } from 'nestjs-distributed-lock/core';
import { startRedis } from '../../support/redis-server.js';
import { latchChildren, endOfWait, noted, waitersOf, wokenByCount } from './latches.js';
import { outcomeOf, useRedis } from './setting.js';
import { AT_ONCE } from './waiting.js';

const KEY = 'imports';
const HOUR = 3_600_000;

describe('processes that count a latch down and wait for it', () => {
  const setting = useRedis();

  it('and are killed while they wait hold up nobody, and leave nothing when it is counted down (G7, G8)', async () => {
    const locks = setting.own();
    await locks.countDownLatch(KEY).trySetCount(1);
    const children = await latchChildren(setting, 2);
    for (const child of children) child.send({ type: 'await', key: KEY, options: wokenByCount });
    const waiting = endOfWait(locks, KEY);
    await noted(setting, KEY, 3);
    await Promise.all(children.map((child) => child.kill()));
    expect(await waitersOf(setting, KEY)).toHaveLength(3);
    const start = performance.now();
    expect(await setting.own().countDownLatch(KEY).countDown()).toBe(0);
    expect((await waiting) - start).toBeLessThan(AT_ONCE);
    expect(await waitersOf(setting, KEY)).toEqual([]);
  });

  it('and are killed while they count have counted what they said, or one more (G6)', async () => {
    const locks = setting.own();
    const latch = locks.countDownLatch(KEY);
    await latch.trySetCount(1_000_000);
    const [child] = await latchChildren(setting, 1);
    child!.send({ type: 'count', key: KEY, times: 1_000_000, timeToLive: HOUR, tally: 'said' });
    for (let heard = 0; heard < 200; heard++) await child!.waitFor('counted');
    await child!.kill();
    const rest = await latch.getCount();
    const said = Number(await setting.redis.get('said'));
    expect(said).toBeGreaterThanOrEqual(200);
    expect([said, said + 1]).toContain(1_000_000 - rest);
    expect(await latch.countDown()).toBe(rest - 1);
  });
});

describe('a server that is restarted while some wait', () => {
  const setting = useRedis();

  it('without its data has lost the latch, and they are told (G8)', async () => {
    const server = await startRedis();
    try {
      const locks = setting.own(server.connection);
      await locks.countDownLatch(KEY).trySetCount(2);
      const waiting = outcomeOf(endOfWait(locks, KEY));
      const redis = server.client();
      await noted({ ...setting, redis }, KEY, 1);
      await server.kill();
      await server.restart();
      const start = performance.now();
      const { error } = await waiting;
      expect(performance.now() - start).toBeLessThan(2_000);
      expect(error).toBeInstanceOf(LockLostError);
      expect(await locks.countDownLatch(KEY).trySetCount(2)).toBe(true);
      await locks.close();
    } finally {
      await server.stop();
    }
  });

  it('with its data goes on counting where it was, and they wait on (G6, G8)', async () => {
    const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    try {
      const locks = setting.own(server.connection);
      const latch = locks.countDownLatch(KEY);
      await latch.trySetCount(2);
      const waiting = endOfWait(locks, KEY);
      const redis = server.client();
      await noted({ ...setting, redis }, KEY, 1);
      await server.kill();
      const counting = latch.countDown({ waitTimeout: 20_000 });
      await server.restart();
      expect(await counting).toBe(1);
      const start = performance.now();
      expect(await latch.countDown({ waitTimeout: 20_000 })).toBe(0);
      // The inbox may be on its way back: whoever has reconnected looks at once.
      expect((await waiting) - start).toBeLessThan(2_000);
      await locks.close();
    } finally {
      await server.stop();
    }
  });
});
