import { passTime } from '../support/virtual-time.js';
import { type Lease, LockLostError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { signalAfter } from '../support/time.js';
import { gate } from '../support/gate.js';
import { late, silent } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { long, type Setting } from './setting.js';

export function holdingContract({ open, newKey, driver, isFree }: Setting): void {
  let key: string;
  let locks: Locks;
  beforeEach(() => {
    key = newKey();
    locks = open();
  });
  const whenFree = () => eventually(() => isFree(key));
  /** What the store says of the key. */
  const check = (owner = 'nobody') => driver(locks).check({ key, owner });

  describe('a lease', () => {
    it('is held until it is released, claims nothing after that, and repeated releases get the first answer', async () => {
      const lease = await locks.acquire(key, long);
      lease.assertHeld();
      expect(lease.key).toBe(key);
      expect(lease.remaining()).toBeGreaterThan(0);
      expect(await Promise.all([lease.release(), lease.release()])).toEqual([true, true]);
      expect(await isFree(key)).toBe(true);
      const next = await open().acquire(key);
      expect(await lease.release()).toBe(true);
      await next.renew();
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      expect(lease.signal.aborted).toBe(false);
    });

    it('ends with its block under await using', async () => {
      const use = async () => {
        await using lease = await locks.acquire(key);
        lease.assertHeld();
        expect(await isFree(key)).toBe(false);
        throw new Error('404');
      };
      await expect(use()).rejects.toThrow('404');
      expect(await isFree(key)).toBe(true);
    });

    it.each([
      [{ keyTimeout: undefined }, 70_000],
      [{}, 70_000],
      [{ keyTimeout: 50_000 }, 50_000],
    ])('is as long as its keyTimeout, or that of the Locks: %j', async (options, keyTimeout) => {
      const lease = await open({ defaults: { keyTimeout: 70_000 } }).acquire(key, options);
      expect(lease.remaining()).toBeLessThanOrEqual(keyTimeout);
      expect(lease.remaining()).toBeGreaterThan(0.98 * keyTimeout);
    });

    it.each([2 ** 31, Number.MAX_SAFE_INTEGER])('may be as long as %d ms', async (keyTimeout) => {
      const lease = await locks.acquire(key, { keyTimeout, minHold: 0, maxHold: keyTimeout });
      await lease.renew();
      expect(lease.remaining()).toBeGreaterThan(0.98 * keyTimeout);
      const { state, remaining } = await check(lease.owner);
      expect(state).toBe('held');
      expect(remaining).toBeGreaterThan(0.98 * keyTimeout);
      expect(lease.signal.aborted).toBe(false);
      expect(await lease.release()).toBe(true);
      expect(await isFree(key)).toBe(true);
    });
  });

  describe('minHold', () => {
    const options = { keyTimeout: 60_000, minHold: 400 };

    it('keeps the key taken after the release, and no longer', async () => {
      const { elapsed } = await timed(async () => {
        expect(await locks.using(key, () => 'done', options)).toBe('done');
        expect(await isFree(key)).toBe(false);
        await whenFree();
      });
      expect(elapsed).toBeGreaterThanOrEqual(398);
      expect(elapsed).toBeLessThan(500);
    });

    it('is over when the body took longer', async () => {
      await locks.using(key, () => passTime(30), { minHold: 10 });
      expect(await isFree(key)).toBe(true);
    });

    it('keeps the key though the holder dies with a lease that is shorter', async () => {
      const { owner } = await open({ misbehaving: silent('renew') }).acquire(key, { keyTimeout: 50, minHold: 20_000 });
      const { state, remaining } = await check(owner);
      expect(state).toBe('held');
      expect(remaining).toBeGreaterThan(10_000);
    });

    it.each([
      ['longer than the lease', 20_000],
      ['shorter than the lease, but longer than what is left of it', 2_900],
    ])('of a re-entrant call, %s, counts from that call on, also if the holder dies', async (_how, minHold) => {
      await locks.using(
        key,
        async ({ owner }) => {
          await passTime(400);
          const calledAt = performance.now();
          await locks.using(key, () => undefined, { minHold });
          const { remaining } = await check(owner);
          expect(performance.now() + remaining).toBeGreaterThanOrEqual(calledAt + minHold - 2);
        },
        { keyTimeout: 3_000 },
      );
      const { state, remaining } = await check();
      expect(state).toBe('taken');
      expect(remaining).toBeGreaterThan(minHold - 2_000);
    });

    it('of a re-entrant call never shortens that of the outer one', async () => {
      await locks.using(key, () => locks.using(key, () => undefined, { minHold: 1 }), { minHold: 20_000 });
      expect((await check()).remaining).toBeGreaterThan(10_000);
    });

    it('does not keep a key that was given up before it was granted', async () => {
      await rejection(open({ misbehaving: late('acquire', 50) }).acquire(key, { minHold: 60_000, signal: signalAfter(10) }));
      await whenFree();
    });
  });

  describe('maxHold', () => {
    it('aborts the signal, frees the key within a keyTimeout, and leaves the call pending until its body ends', async () => {
      const end = gate();
      const settled = jest.fn();
      let lease: Lease | undefined;
      const body = async (of: Lease) => {
        lease = of;
        await end.passed;
        return 'done';
      };
      const call = rejection(locks.using(key, body, { maxHold: 200, keyTimeout: 500 })).finally(settled);
      const { elapsed } = await timed(() => eventually(() => lease?.signal.aborted === true));
      expect(elapsed).toBeGreaterThanOrEqual(200);
      expect(lease!.signal.reason).toBeInstanceOf(LockLostError);
      await expect(lease!.renew()).rejects.toBeInstanceOf(LockLostError);
      await whenFree();
      expect(settled).not.toHaveBeenCalled();
      end.open();
      const error = (await call) as LockLostError;
      expect(error).toMatchObject({ name: 'LockLostError', result: 'done', key });
      expect(error.cause).toBe(lease!.signal.reason);
    });

    it('does not spoil the result of a body that stops when the signal aborts', async () => {
      const stopping = (lease: Lease) => new Promise((resolve) => lease.signal.addEventListener('abort', () => resolve('stopped')));
      expect(await locks.using(key, stopping, { maxHold: 20, keyTimeout: 30_000 })).toBe('stopped');
      expect(await isFree(key)).toBe(true);
    });

    it('of an inner call aborts the signal of that call only', async () => {
      const inner = (outer: Lease) => async (lease: Lease) => {
        await eventually(() => lease.signal.aborted);
        expect(outer.signal.aborted).toBe(false);
        await outer.renew();
      };
      await locks.using(key, (outer) => locks.using(key, inner(outer), { maxHold: 20 }), long);
      expect(await isFree(key)).toBe(true);
    });

    it('of the outer call aborts the signals of all calls inside', async () => {
      const inner = ({ signal }: Lease) => eventually(() => signal.aborted).then(() => signal.reason as unknown);
      expect(await locks.using(key, () => locks.using(key, inner), { ...long, maxHold: 20 })).toBeInstanceOf(LockLostError);
    });

    it('of an inner call that outlives the outer one frees the key', async () => {
      const end = gate();
      const inner = () => rejection(locks.using(key, () => end.passed, { maxHold: 50 }));
      const { child } = await locks.using(key, () => ({ child: inner() }), { keyTimeout: 300 });
      await whenFree();
      end.open();
      expect(await child).toBeInstanceOf(LockLostError);
    });
  });
}
