import { LockConfigError, StoreError } from 'nestjs-distributed-lock/core';
import { outcomeOf, useRedis } from './setting.js';
import { queued } from './waiting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 60_000, waitTimeout: 15_000 };
const setting = useRedis();

describe('a key whose data are no lock', () => {
  it.each<[string, () => Promise<unknown>, string]>([
    ['a list', () => setting.redis.rpush(KEY, 'a'), 'list'],
    ['a hash', () => setting.redis.hset(KEY, 'a', 1), 'hash'],
    ['a sorted set', () => setting.redis.zadd(KEY, 1, 'read/write lock 1000000000', 2, 'semaphore 2'), 'zset'],
    ['a sorted set of negative scores', () => setting.redis.zadd(KEY, -1, 'a', 1, 'b'), 'zset'],
  ])('is a StoreError at once, and untouched: %s', async (_what, make, type) => {
    await make();
    const there = await setting.redis.dump(KEY);
    const locks = setting.own();
    for (const lock of [locks.readWriteLock(KEY).read, locks.readWriteLock(KEY).write, locks.semaphore(KEY, { permits: 2 })]) {
      const { error } = await outcomeOf(lock.acquire(patient));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringContaining('WRONGTYPE') });
    }
    expect(await setting.redis.type(KEY)).toBe(type);
    expect(await setting.redis.dump(KEY)).toEqual(there);
    expect(await setting.keys()).toEqual([KEY]);
  });

  it('during a hold is a lost lease, and the others of its batch are renewed and released', async () => {
    const locks = setting.own();
    const keys = ['a', 'b', 'c'];
    const leases = await Promise.all(keys.map((key) => locks.readWriteLock(key).read.acquire({ ...patient, keyTimeout: 1_500 })));
    await setting.redis.multi().del('b').zadd('b', 1, leases[1]!.owner, 2, 'other').exec();
    await expect(leases[1]!.renew()).rejects.toThrow('lost');
    await Promise.all([leases[0]!.renew(), leases[2]!.renew()]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, false, true]);
    expect(await setting.redis.zrange('b', '0', '-1')).toEqual([leases[1]!.owner, 'other']);
  });
});

describe('a key that others queue for as another kind of lock, though nobody holds it', () => {
  const queue = `{${KEY}}:queue`;

  it.each([
    ['a mutex', 'stranger:1\n\n1000'],
    ['a semaphore', 'stranger:1\n\n1000\n1 semaphore'],
  ])('is a LockConfigError: %s', async (what, place) => {
    await setting.redis.zadd(queue, 1, place);
    const { error } = await outcomeOf(
      setting
        .own()
        .readWriteLock(KEY)
        .read.acquire({ ...patient, fair: true }),
    );
    expect(error).toBeInstanceOf(LockConfigError);
    expect(String(error)).toContain(what);
    expect(String(error)).toContain('read/write lock');
    expect(await setting.redis.zrange(queue, '0', '-1')).toEqual([place]);
  });
});

describe('many shares', () => {
  it('cost the server no more than few: a million permits are taken and given back at once', async () => {
    const locks = setting.own();
    const lease = await locks.semaphore(KEY, { permits: 1_000_000, count: 999_999 }).acquire(patient);
    expect(await setting.redis.zcard(KEY)).toBe(3);
    const last = await locks.semaphore(KEY, { permits: 1_000_000 }).acquire(patient);
    expect(await locks.semaphore(KEY, { permits: 1_000_000 }).tryAcquire()).toBeNull();
    for (const each of [lease, last]) expect(await each.release()).toBe(true);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('that a late repetition takes once more are kept once, for a minHold, and not counted for ever (G6)', async () => {
    const { semaphore } = setting.own().store;
    const take = (owner: string) =>
      semaphore!.acquire({
        key: KEY,
        owner,
        ttl: 60_000,
        tokens: 1,
        queue: false,
        share: { count: 1, permits: 3, rank: 0 },
      });
    for (let time = 0; time < 2; time++) {
      expect(await take('a')).toMatchObject({ granted: true });
      expect(await semaphore!.release({ key: KEY, owner: 'a', keepFor: 60_000 })).toBe('released');
    }
    const others = [await take('b'), await take('c'), await take('d')];
    expect(others.map(({ granted }) => granted)).toEqual([true, true, false]);
  });

  it('are offered to 256 waiters in one step of the server, so that it is there for others, and to more by each who confirms', async () => {
    const { store } = setting.own();
    const { read, write } = store.readWriteLock!;
    const request = { key: KEY, ttl: 60_000, tokens: 1, queue: true };
    await write.acquire({ ...request, owner: 'writer', share: { count: Infinity, permits: Infinity, rank: 0 } });
    const ask = (n: number) => read.acquire({ ...request, owner: `reader ${n}`, share: { count: 1, permits: Infinity, rank: 0 } });
    await Promise.all(Array.from({ length: 600 }, (_, n) => ask(n)));
    await write.release({ key: KEY, owner: 'writer', keepFor: 0 });
    expect(await setting.redis.zcard(`{${KEY}}:queue`)).toBe(600 - 256);
    expect(await ask(0)).toMatchObject({ granted: true });
    expect(await setting.redis.zcard(`{${KEY}}:queue`)).toBe(600 - 2 * 256);
    expect(await ask(0)).toMatchObject({ granted: true });
    expect(await setting.redis.exists(`{${KEY}}:queue`)).toBe(0);
  });

  it('are given to all of 1,000 readers who wait for a writer, together and at once', async () => {
    const [locks, others] = [setting.own(), setting.own()];
    const writer = await locks.readWriteLock(KEY).write.acquire(patient);
    const { read } = others.readWriteLock(KEY);
    const readers = Array.from({ length: 1_000 }, () => read.acquire({ ...patient, waitTimeout: 60_000, retryInterval: 60_000 }));
    await queued(setting, KEY, 1_000);
    const start = performance.now();
    await writer.release();
    const leases = await Promise.all(readers);
    expect(performance.now() - start).toBeLessThan(5_000);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
