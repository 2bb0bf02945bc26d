import { LockConfigError } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { SHORT_LEASE } from '../../contract/open-locks.js';
import { endOf, useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const FENCE = `{${KEY}}:fence`;

describe('the fencing tokens of a key', () => {
  const setting = useRedis();

  async function token(locks = setting.own()): Promise<number> {
    return locks.using(KEY, (lease) => lease.fencingToken!, woken);
  }

  it('are safe integers that grow from one holder to the next (G2)', async () => {
    const locks = setting.own();
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const next = await token(locks);
      expect(Number.isSafeInteger(next)).toBe(true);
      expect(next).toBeGreaterThan(last);
      expect(await setting.redis.get(FENCE)).toBe(String(next));
      last = next;
    }
  });

  it.each([
    ['the token was lost', () => setting.redis.del(FENCE)],
    ['the server started again, empty', () => setting.server.restart()],
    ["the server's clock went back behind the last one", () => setting.redis.set(FENCE, String(Date.now() * 1000 + 40_000_000))],
  ])('grow though %s (G2)', async (_, happens) => {
    const locks = setting.own();
    const before = await locks.acquire(KEY, { keyTimeout: 5_000 });
    await happens();
    const last = Math.max(before.fencingToken!, Number((await setting.redis.get(FENCE)) ?? 0));
    await setting.redis.del(KEY);
    const next = await token(locks);
    expect(next).toBeGreaterThan(last);
    expect(await token(locks)).toBeGreaterThan(next);
  });

  it('are remembered for fenceTimeout where that is given, and grow when they are forgotten', async () => {
    const locks = setting.own(undefined, { fenceTimeout: 2 * SHORT_LEASE });
    const last = await locks.using(KEY, (lease) => lease.fencingToken!, {
      ...woken,
      keyTimeout: SHORT_LEASE,
      onLost: 'ignore',
    });
    const left = await setting.redis.pttl(FENCE);
    expect(left).toBeLessThanOrEqual(2 * SHORT_LEASE);
    await eventually(async () => (await setting.keys()).length === 0);
    expect(await token(locks)).toBeGreaterThan(last);
  });

  it('are not forgotten while a mutex, a write lock or a semaphore is held, however short fenceTimeout is (G2)', async () => {
    const locks = setting.own(undefined, { fenceTimeout: 7_000 });
    const kinds = [locks.mutex('mutex'), locks.readWriteLock('write lock').write, locks.semaphore('semaphore', { permits: 2 })];
    const leases = await Promise.all(kinds.map((lock) => lock.acquire({ keyTimeout: 5_000 })));
    const start = leases.map(endOf);
    // Each renewal moves the end of the fence, which would have come by then.
    await eventually(async () => {
      for (const { key, fencingToken } of leases) expect(await setting.redis.get(`{${key}}:fence`)).toBe(String(fencingToken));
      return leases.every((lease, i) => endOf(lease) > start[i]! + 4_000);
    });
    for (const { key } of leases) expect(await setting.redis.pttl(`{${key}}:fence`)).toBeGreaterThan(await setting.redis.pttl(key));
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, true]);
  });

  it('outlast a lease that is longer than fenceTimeout, also when a shorter one beside it is acquired or renewed (G2)', async () => {
    const take = (keyTimeout: number) =>
      setting.own(undefined, { fenceTimeout: 100 }).semaphore(KEY, { permits: 3 }).acquire({ keyTimeout });
    const [renewed, long, short] = [await take(5_000), await take(600_000), await take(SHORT_LEASE)];
    expect(await setting.redis.pttl(FENCE)).toBeGreaterThan(300_000);
    await renewed.renew();
    expect(await setting.redis.pttl(FENCE)).toBeGreaterThan(300_000);
    await short.release();
    expect(await Promise.all([renewed.release(), long.release()])).toEqual([true, true]);
  });

  it('have a name that a key with a hash tag must not take', async () => {
    const locks = setting.own();
    for (const key of ['{order}:fence', '{order}:queue', 'a{order}b:fence']) {
      await expect(locks.acquire(key)).rejects.toThrow(LockConfigError);
      await expect(locks.acquire(key)).rejects.toThrow(key);
    }
    for (const key of ['order:fence', '{order}:fences', '{order}fence', '{order:fence}']) {
      expect(await (await locks.acquire(key, woken)).release()).toBe(true);
    }
    expect((await setting.keys()).length).toBe(4); // as many fences as locks
  });

  it('and waiters of "a" and "{a}" are not mixed up: they are two locks', async () => {
    const locks = setting.own();
    const [plain, tagged] = [await locks.acquire('a', woken), await locks.acquire('{a}', woken)];
    const wait = locks.acquire('a', { ...woken, fair: true });
    await eventually(async () => (await setting.keys('*:queue')).length === 1);
    await tagged.release();
    expect(await setting.redis.exists('{a}')).toBe(0);
    await plain.release();
    expect(await (await wait).release()).toBe(true);
  });
});
