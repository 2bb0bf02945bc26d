import { Locks, LockConfigError, LockLostError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);

function open() {
  const store = memoryStore();
  const renewals: number[] = [];
  const { mutex } = store;
  const renew = mutex.renew.bind(mutex);
  mutex.renew = (batch) => {
    renewals.push(...batch.map(({ ttl }) => ttl));
    return renew(batch);
  };
  const locks = new Locks(store, { logger: false });
  const isTaken = async (key: string) => (await mutex.check({ key, owner: 'nobody' })).state === 'taken';
  return { locks, renewals, isTaken };
}

describe('a lease', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  describe('with renew: false', () => {
    it('is not renewed: at its end the signal aborts, and the key is free', async () => {
      const { locks, renewals, isTaken } = open();
      const lease = await locks.acquire('key', { keyTimeout: 1000, renew: false });
      const { signal } = lease;
      await pass(900);
      expect(lease.remaining()).toBeGreaterThan(0);
      expect(await isTaken('key')).toBe(true);
      await pass(101);
      expect(signal.reason).toBeInstanceOf(LockLostError);
      expect(signal.reason).toHaveProperty('message', 'The lease of "key" was lost: its 1000 ms are over.');
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(await isTaken('key')).toBe(false);
      expect(await lease.release()).toBe(false);
      expect(renewals).toEqual([]);
    });

    it('rejects a call whose body outlasts it, with its result', async () => {
      const { locks } = open();
      const call = locks.using('key', () => pass(1500).then(() => 5), { keyTimeout: 1000, renew: false });
      await expect(call).rejects.toMatchObject({ name: 'LockLostError', result: 5 });
    });

    it('is renewed by hand', async () => {
      const { locks, renewals, isTaken } = open();
      const lease = await locks.acquire('key', { keyTimeout: 1000, renew: false });
      await pass(700);
      await lease.renew();
      expect(lease.remaining()).toBe(990);
      await pass(900);
      expect(await isTaken('key')).toBe(true);
      await pass(101);
      expect(await isTaken('key')).toBe(false);
      expect(renewals).toEqual([1000]);
    });

    it('begins anew for the next caller of the process, which has the whole length', async () => {
      const { locks } = open();
      const first = await locks.acquire('key', { keyTimeout: 1000, renew: false });
      const waiting = locks.acquire('key', { keyTimeout: 1000, renew: false, waitTimeout: 5000 });
      await pass(600);
      await first.release();
      const second = await waiting;
      expect(second.remaining()).toBe(990);
      expect(second.owner).not.toBe(first.owner);
      await second.release();
    });

    it('is not taken over from a lease that is renewed, and ends', async () => {
      const { locks, isTaken } = open();
      const first = await locks.acquire('key', { keyTimeout: 1000 });
      const waiting = locks.acquire('key', { keyTimeout: 1000, renew: false, waitTimeout: 5000 });
      await pass(600);
      await first.release();
      const second = await waiting;
      await pass(1001);
      expect(second.signal.aborted).toBe(true);
      expect(await isTaken('key')).toBe(false);
    });

    it('ends alone inside of a lease that is renewed', async () => {
      const { locks } = open();
      await locks.using(
        'key',
        async (outer) => {
          const inner = await locks.acquire('key', { keyTimeout: 1000, renew: false });
          await pass(1001);
          expect(inner.signal.aborted).toBe(true);
          expect(outer.signal.aborted).toBe(false);
          await inner.release();
        },
        { keyTimeout: 3000 },
      );
    });
  });

  describe('that is renewed for another length', () => {
    it('has it from now on', async () => {
      const { locks, renewals } = open();
      const lease = await locks.acquire('key', { keyTimeout: 900 });
      await lease.renew(9000);
      expect(lease.remaining()).toBe(8910);
      await pass(6001);
      expect(renewals).toEqual([9000, 9000, 9000]);
      await lease.renew(900);
      expect(lease.remaining()).toBeGreaterThan(8000);
      renewals.length = 0;
      await pass(9900);
      expect(renewals.length).toBeGreaterThanOrEqual(30);
      expect(new Set(renewals)).toEqual(new Set([900]));
      expect(lease.remaining()).toBeGreaterThan(0);
      await lease.release();
    });

    it('does not count the answer to an older renewal for the new length', async () => {
      const store = memoryStore();
      const { mutex } = store;
      const renew = mutex.renew.bind(mutex);
      const answers: (() => void)[] = [];
      mutex.renew = (batch) =>
        renew(batch).map((reply) => (batch[0]!.ttl === 900 ? new Promise((resolve) => answers.push(() => resolve(reply))) : reply));
      const lease = await new Locks(store, { logger: false }).acquire('key', { keyTimeout: 900 });
      await pass(310);
      expect(answers).toHaveLength(1);
      await lease.renew(3000);
      const remaining = lease.remaining();
      answers[0]!();
      await pass(0);
      expect(lease.remaining()).toBeLessThanOrEqual(remaining);
      await lease.release();
    });

    it.each([9, 0.5, -1, NaN, Infinity, '500', null])('is refused with %p', async (keyTimeout) => {
      const { locks } = open();
      const lease = await locks.acquire('key');
      await expect(lease.renew(keyTimeout as never)).rejects.toBeInstanceOf(LockConfigError);
      await lease.release();
    });
  });
});
