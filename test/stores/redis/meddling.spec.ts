import { LockConfigError, LockLostError, LockTimeoutError, StoreError, type Lease } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { endOf, useRedis } from './setting.js';
import { queued, scriptCalls, waiterFor, woken } from './waiting.js';

const KEY = 'order:42';
const QUEUE = `{${KEY}}:queue`;
const setting = useRedis();

/** Resolves when the lease says that it is lost. */
function lossOf({ signal }: Lease): Promise<unknown> {
  return eventually(() => (signal.aborted ? (signal.reason as unknown) : false));
}

describe('a key that another program changes during a hold', () => {
  describe.each([
    ['DEL', () => setting.redis.del(KEY)],
    ['another owner', () => setting.redis.set(KEY, 'stranger')],
    ['a value of another type', () => setting.redis.multi().del(KEY).rpush(KEY, 'a', 'list').exec()],
  ])('by %s', (what, meddle) => {
    it('is found lost by a renewal: the signal aborts, and the result comes with a LockLostError (G3, G10)', async () => {
      const work = async (lease: Lease): Promise<string> => {
        await meddle();
        const there = await setting.redis.dump(KEY);
        // Once by a renewal of the store's own, which takes a third of the lease.
        if (what === 'DEL') expect(await lossOf(lease)).toBeInstanceOf(LockLostError);
        await expect(lease.renew()).rejects.toThrow(LockLostError);
        expect(await lossOf(lease)).toBeInstanceOf(LockLostError);
        expect(() => lease.assertHeld()).toThrow(LockLostError);
        expect(lease.remaining()).toBe(0);
        expect(await setting.redis.dump(KEY)).toEqual(there);
        return 'result';
      };
      const error = await rejection(setting.own().using(KEY, work, { keyTimeout: 5_000 }));
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).result).toBe('result');
    });

    it("is found lost by the release, where that comes first, and leaves the method's own error as it is (G4, G10)", async () => {
      const work = async (): Promise<string> => {
        await meddle();
        return 'result';
      };
      const error = await rejection(setting.own().using(KEY, work, woken));
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).result).toBe('result');
      await setting.redis.del(KEY);
      const own = new Error('out of stock');
      const failing = () => work().then(() => Promise.reject(own));
      expect(await rejection(setting.own().using(KEY, failing, woken))).toBe(own);
    });
  });

  it('does not keep the other leases of its batch from being renewed (G4)', async () => {
    const locks = setting.own();
    const keys = Array.from({ length: 20 }, (_, i) => `batch:${i}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { keyTimeout: 5_000 })));
    const ends = leases.map(endOf);
    await setting.redis.multi().del(keys[7]!).rpush(keys[7]!, 'a', 'list').exec();
    await lossOf(leases[7]!);
    await eventually(() => leases.filter((lease, i) => endOf(lease) > ends[i]! + 100).length === 19);
    expect(await setting.redis.type(keys[7]!)).toBe('list');
    const answers = await Promise.all(leases.map((lease) => lease.release()));
    expect(answers.filter((answer) => answer)).toHaveLength(19);
  });

  it('to a sorted set is a lost lease, and the others of its batch are renewed and released', async () => {
    const locks = setting.own();
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => locks.readWriteLock(key).read.acquire(woken)));
    await setting.redis.multi().del('b').zadd('b', 1, leases[1]!.owner, 2, 'other').exec();
    await expect(leases[1]!.renew()).rejects.toThrow('lost');
    await Promise.all([leases[0]!.renew(), leases[2]!.renew()]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, false, true]);
    expect(await setting.redis.zrange('b', '0', '-1')).toEqual([leases[1]!.owner, 'other']);
  });
});

describe('a key that another program has', () => {
  it('with a value that is empty is waited for like any other (G2)', async () => {
    await setting.redis.set(KEY, '', 'PX', 60_000);
    expect(await setting.own().tryAcquire(KEY)).toBeNull();
    expect(await rejection(setting.own().acquire(KEY, { waitTimeout: 50, fair: true }))).toBeInstanceOf(LockTimeoutError);
    expect(await setting.redis.get(KEY)).toBe('');
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['a list', () => setting.redis.rpush(KEY, 'a'), 'list'],
    ['a hash', () => setting.redis.hset(KEY, 'a', 1), 'hash'],
    ['a sorted set', () => setting.redis.zadd(KEY, 1, 'read/write lock 1000000000', 2, 'semaphore 2'), 'zset'],
    ['a sorted set of negative scores', () => setting.redis.zadd(KEY, -1, 'a', 1, 'b'), 'zset'],
  ])('as %s is a StoreError, not contention, and is left as it is', async (_what, make, type) => {
    await make();
    const there = await setting.redis.dump(KEY);
    const locks = setting.own();
    const kinds = [
      locks.readWriteLock(KEY).read,
      locks.readWriteLock(KEY).write,
      locks.semaphore(KEY, { permits: 2 }),
      ...(type === 'zset' ? [] : [locks.mutex(KEY)]),
    ];
    for (const lock of kinds) {
      const error = await rejection(lock.acquire({ waitTimeout: Infinity }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringContaining('WRONGTYPE') });
    }
    expect(await setting.redis.dump(KEY)).toEqual(there);
    expect(await setting.keys()).toEqual([KEY]);
  });

  it.each([
    ['a mutex', 'stranger:1\n\n1000'],
    ['a semaphore', 'stranger:1\n\n1000\n1 semaphore'],
  ])('and for which others queue, as for %s, is a LockConfigError where it is another kind of lock', async (what, entry) => {
    await setting.redis.zadd(QUEUE, 1, entry);
    const error = await rejection(
      setting
        .own()
        .readWriteLock(KEY)
        .read.acquire({ ...woken, fair: true }),
    );
    expect(error).toBeInstanceOf(LockConfigError);
    expect(String(error)).toContain(what);
    expect(String(error)).toContain('read/write lock');
    expect(await setting.redis.zrange(QUEUE, '0', '-1')).toEqual([entry]);
  });
});

describe('many shares', () => {
  it('that a late repetition takes once more are kept once, for a minHold, and are free afterwards (G6)', async () => {
    const { semaphore } = setting.own().store;
    const share = { count: 1, permits: 3, rank: 0 } as const;
    const take = (owner: string) => semaphore!.acquire({ key: KEY, owner, ttl: 60_000, tokens: 1, queue: false, share });
    for (let time = 0; time < 2; time++) {
      expect(await take('a')).toMatchObject({ granted: true });
      expect(await semaphore!.release({ key: KEY, owner: 'a', keepFor: 60_000 })).toBe('released');
    }
    const others = [await take('b'), await take('c'), await take('d')];
    expect(others.map(({ granted }) => granted)).toEqual([true, true, false]);
  });

  it('are offered to 256 waiters in one step of the server, and to more by each who confirms', async () => {
    const { read, write } = setting.own().store.readWriteLock!;
    const request = { key: KEY, ttl: 60_000, tokens: 1, queue: true };
    await write.acquire({ ...request, owner: 'writer', share: { count: Infinity, permits: Infinity, rank: 0 } });
    const ask = (n: number) => read.acquire({ ...request, owner: `reader ${n}`, share: { count: 1, permits: Infinity, rank: 0 } });
    await Promise.all(Array.from({ length: 600 }, (_, n) => ask(n)));
    // Of a machine that is slow, no offer ends before the waiter confirms.
    const entries = await setting.redis.zrange(QUEUE, '0', '-1', 'WITHSCORES');
    const longer = entries.map((each) => each.replace(/^(.*\n.*\n)1000\n/, '$1600000\n'));
    const pairs = Array.from({ length: 600 }, (_, i) => [Number(longer[2 * i + 1]), longer[2 * i]!]).flat();
    await setting.redis
      .multi()
      .del(QUEUE)
      .zadd(QUEUE, ...pairs)
      .exec();
    await write.release({ key: KEY, owner: 'writer', keepFor: 0 });
    expect(await setting.redis.zcard(QUEUE)).toBe(600 - 256);
    expect(await ask(0)).toMatchObject({ granted: true });
    expect(await setting.redis.zcard(QUEUE)).toBe(600 - 2 * 256);
    expect(await ask(0)).toMatchObject({ granted: true });
    expect(await setting.redis.exists(QUEUE)).toBe(0);
  });
});

it('a member that is no queue entry, such as a mark of an older version, holds up no queue (G8)', async () => {
  const passOn = await waiterFor(setting, KEY, setting.own());
  await queued(setting, KEY, 1);
  await setting.redis.zadd(QUEUE, 0, 'one\nan inbox', '+inf', 'another\nan inbox');
  await passOn();
});

describe('the classic recipe, SET key owner NX PX and compare-and-delete', () => {
  const DELETE = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`;
  const take = async () => (await setting.redis.set(KEY, 'classic', 'PX', 60_000, 'NX')) === 'OK';
  const give = () => setting.redis.eval(DELETE, 1, KEY, 'classic');

  it('keeps us out, also when it set no expiry, and is distinguished from an outage', async () => {
    const locks = setting.own();
    expect(await take()).toBe(true);
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await setting.redis.persist(KEY);
    const error = await rejection(locks.acquire(KEY, { waitTimeout: 100, retryInterval: 20 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect((error as Error).message).toContain('classic');
    expect(await setting.redis.get(KEY)).toBe('classic');
  });

  it('is found to have deleted the key, though it notifies nobody, by a waiter that polls (G8)', async () => {
    await take();
    const wait = setting.own().acquire(KEY, { ...woken, retryInterval: 100 });
    const before = await scriptCalls(setting);
    await eventually(async () => (await scriptCalls(setting)) > before + 2);
    expect(await give()).toBe(1);
    expect((await wait).remaining()).toBeGreaterThan(0);
  });

  it('is kept out for what is left of a minHold after our release', async () => {
    const lease = await setting.own().acquire(KEY, { ...woken, minHold: 600_000 });
    await lease.release();
    expect(await take()).toBe(false);
    expect(await give()).toBe(0);
    expect(await setting.redis.pttl(KEY)).toBeGreaterThan(300_000);
  });
});

it('a driver rejects a key that Redis cannot have, and does not throw', async () => {
  const { mutex } = setting.own().store;
  let call: Promise<unknown> | undefined;
  expect(() => (call = mutex.release({ key: '{x}:fence', owner: 'owner', keepFor: 0 }))).not.toThrow();
  await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
});
