import { LockLostError, LockTimeoutError, StoreError, type Lease } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 1_500, waitTimeout: 10_000 };

/** Resolves when the lease says that it is lost. */
function lossOf(lease: Lease): Promise<unknown> {
  const { signal } = lease;
  return eventually(() => (signal.aborted ? (signal.reason as unknown) : false), { within: 3_000 + SLACK });
}

describe('a key that somebody meddles with during a hold', () => {
  const setting = useRedis();

  it('before it begins, by a lock whose value is empty, is waited for like any other (G2)', async () => {
    await setting.redis.set(KEY, '', 'PX', 60_000);
    expect(await setting.own().tryAcquire(KEY)).toBeNull();
    expect((await outcomeOf(setting.own().acquire(KEY, { waitTimeout: 50, fair: true }))).error).toBeInstanceOf(LockTimeoutError);
    expect(await setting.redis.get(KEY)).toBe('');
  });

  describe.each([
    ['FLUSHALL', () => setting.redis.flushall()],
    ['DEL', () => setting.redis.del(KEY)],
    ['another owner', () => setting.redis.set(KEY, 'stranger')],
    ['a value of another type', () => setting.redis.multi().del(KEY).rpush(KEY, 'a', 'list').exec()],
  ])('by %s', (_, meddle) => {
    it('is found lost by the next renewal: the signal aborts, and the result comes with a LockLostError (G3, G10)', async () => {
      const work = async (lease: Lease): Promise<string> => {
        await meddle();
        const there = await setting.redis.dump(KEY);
        expect(await lossOf(lease)).toBeInstanceOf(LockLostError);
        expect(() => lease.assertHeld()).toThrow(LockLostError);
        expect(lease.remaining()).toBe(0);
        await expect(lease.renew()).rejects.toThrow(LockLostError);
        expect(await setting.redis.dump(KEY)).toEqual(there);
        return 'result';
      };
      const { error } = await outcomeOf(setting.own().using(KEY, work, patient));
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).result).toBe('result');
    });

    it('is found lost by the release, where that comes first (G4, G10)', async () => {
      const locks = setting.own();
      const work = async (): Promise<string> => {
        await meddle();
        return 'result';
      };
      const { error } = await outcomeOf(locks.using(KEY, work, { ...patient, keyTimeout: 60_000 }));
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).result).toBe('result');
    });

    it("leaves the method's own error as it is (G10)", async () => {
      const own = new Error('out of stock');
      const work = async (): Promise<never> => {
        await meddle();
        throw own;
      };
      expect((await outcomeOf(setting.own().using(KEY, work, patient))).error).toBe(own);
    });
  });

  it('does not keep the other leases of its batch from being renewed (G4)', async () => {
    const locks = setting.own();
    const keys = Array.from({ length: 20 }, (_, i) => `batch:${i}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { ...patient, keyTimeout: 3_000 })));
    await setting.redis.multi().del(keys[7]!).rpush(keys[7]!, 'a', 'list').exec();
    await lossOf(leases[7]!);
    await eventually(() => leases.filter((lease) => lease.remaining() > 2_000).length === 19, { within: 3_000 + SLACK });
    expect(await setting.redis.type(keys[7]!)).toBe('list');
    const answers = await Promise.all(leases.map((lease) => lease.release()));
    expect(answers.filter((answer) => answer)).toHaveLength(19);
  });

  it.each([0, Infinity])(
    'is a StoreError at once, not contention, when it has another type from the first, with patience %d',
    async (waitTimeout) => {
      await setting.redis.rpush(KEY, 'a', 'list');
      const { error, took } = await outcomeOf(setting.own().acquire(KEY, { waitTimeout }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringContaining('WRONGTYPE') });
      expect(took).toBeLessThan(SLACK);
      expect(await setting.redis.lrange(KEY, 0, -1)).toEqual(['a', 'list']);
    },
  );
});

describe('the classic recipe, SET key value NX PX and compare-and-delete', () => {
  const setting = useRedis();
  const COMPARE_AND_DELETE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
  const classicSet = (px: number) => setting.redis.set(KEY, 'classic', 'PX', px, 'NX');
  const classicDelete = () => setting.redis.eval(COMPARE_AND_DELETE, 1, KEY, 'classic');

  it('keeps us out, also when it set no expiry, and is told apart from an outage', async () => {
    const locks = setting.own();
    await classicSet(60_000);
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await setting.redis.persist(KEY);
    const { error } = await outcomeOf(locks.acquire(KEY, { waitTimeout: 100, retryInterval: 20 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect((error as Error).message).toContain('classic');
    expect(await setting.redis.get(KEY)).toBe('classic');
  });

  it('is found to have deleted the key, though it tells nobody, within two retryIntervals (G8)', async () => {
    const locks = setting.own();
    await classicSet(60_000);
    const wait = locks.acquire(KEY, { waitTimeout: 30_000, retryInterval: 100 });
    const before = await setting.redis.info('commandstats');
    const asked = (info: string): number => Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
    await eventually(async () => asked(await setting.redis.info('commandstats')) > asked(before) + 2);
    expect(await classicDelete()).toBe(1);
    const { value, took } = await outcomeOf(wait);
    expect(value?.remaining()).toBeGreaterThan(0);
    expect(took).toBeLessThan(200 + SLACK);
  });

  it('is kept out for what is left of a minHold after our release', async () => {
    const lease = await setting.own().acquire(KEY, { ...patient, minHold: 60_000 });
    await lease.release();
    expect(await classicSet(1_000)).toBeNull();
    expect(await classicDelete()).toBe(0);
    expect(await setting.redis.pttl(KEY)).toBeGreaterThan(60_000 - SLACK);
  });
});
