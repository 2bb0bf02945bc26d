import { type Lease, LockLostError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewalBy, renewing } from './renewing.js';
import { pause, signalAfter } from '../support/time.js';

export function holdingContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey, driver } = locksOpener(makeStore, kind);
  let key: string;
  let locks: Locks;

  beforeEach(() => {
    key = newKey();
    locks = open();
  });

  const isFree = async () => {
    const lease = await open().tryAcquire(key);
    return lease !== null && (await lease.release());
  };

  describe('a lease', () => {
    it('is held until it is released, and repeated releases get the first answer', async () => {
      const lease = await locks.acquire(key, { keyTimeout: 30_000 });
      lease.assertHeld();
      expect(lease.key).toBe(key);
      expect(lease.remaining()).toBeGreaterThan(0);
      expect(await Promise.all([lease.release(), lease.release()])).toEqual([true, true]);
      expect(await isFree()).toBe(true);
      const next = await open().acquire(key);
      expect(await lease.release()).toBe(true);
      next.assertHeld();
      await next.renew();
    });

    it('keeps saying that it was lost', async () => {
      const lease = await locks.acquire(key);
      await driver().release({ key, owner: lease.owner, keepFor: 0 });
      expect([await lease.release(), await lease.release()]).toEqual([false, false]);
    });

    it('claims nothing after its release', async () => {
      const lease = await locks.acquire(key);
      await lease.release();
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      expect(lease.signal.aborted).toBe(false);
    });

    it('ends with its block under await using', async () => {
      const use = async () => {
        await using lease = await locks.acquire(key);
        lease.assertHeld();
        expect(await isFree()).toBe(false);
        throw new Error('404');
      };
      await expect(use()).rejects.toThrow('404');
      expect(await isFree()).toBe(true);
    });

    it('is as long as its keyTimeout, or that of the Locks', async () => {
      const lengths = await Promise.all([
        open({ defaults: { keyTimeout: 70_000 } }).using(newKey(), (lease) => lease.remaining(), { keyTimeout: undefined }),
        open({ defaults: { keyTimeout: 70_000 } }).using(newKey(), (lease) => lease.remaining()),
        open({ defaults: { keyTimeout: 70_000 } }).using(newKey(), (lease) => lease.remaining(), { keyTimeout: 50_000 }),
      ]);
      expect(lengths.map((length) => Math.ceil(length / 10_000))).toEqual([7, 7, 5]);
    });

    it.each([2 ** 31, Number.MAX_SAFE_INTEGER])('may be as long as %d ms', async (keyTimeout) => {
      const lease = await locks.acquire(key, { keyTimeout, minHold: 0, maxHold: keyTimeout });
      await lease.renew();
      expect(lease.remaining()).toBeGreaterThan(0.98 * keyTimeout);
      const { state, remaining } = await driver(locks).check({ key, owner: lease.owner });
      expect(state).toBe('held');
      expect(remaining).toBeGreaterThan(0.98 * keyTimeout);
      expect(lease.signal.aborted).toBe(false);
      expect(await lease.release()).toBe(true);
      expect(await isFree()).toBe(true);
    });
  });

  describe('minHold', () => {
    const options = { keyTimeout: 60_000, minHold: 400 };

    it('keeps the key taken after the release, and no longer', async () => {
      const start = performance.now();
      expect(await locks.using(key, () => 'done', options)).toBe('done');
      expect(await isFree()).toBe(false);
      await eventually(isFree, { within: 10_000 });
      expect(performance.now() - start).toBeGreaterThanOrEqual(398);
    });

    it('is over when the body took longer', async () => {
      await locks.using(key, () => pause(30), { minHold: 10 });
      expect(await isFree()).toBe(true);
    });

    it('cannot be prolonged by a renewal that comes late', async () => {
      const late = gate();
      const slow = open({ misbehaving: (real) => ({ renew: renewing((request) => late.passed.then(() => renewalBy(real, request))) }) });
      const lease = await slow.acquire(key, options);
      const renewal = lease.renew();
      await lease.release();
      late.open();
      await renewal;
      await eventually(isFree);
    });

    it('keeps the key though the holder dies with a lease that is shorter', async () => {
      const dying = open({ misbehaving: () => ({ renew: renewing(() => new Promise(() => undefined)) }) });
      const { owner } = await dying.acquire(key, { keyTimeout: 50, minHold: 20_000 });
      const { state, remaining } = await driver(locks).check({ key, owner });
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
          await pause(400);
          const calledAt = performance.now();
          await locks.using(key, () => undefined, { minHold });
          const { remaining } = await driver(locks).check({ key, owner });
          expect(performance.now() + remaining).toBeGreaterThanOrEqual(calledAt + minHold - 2);
        },
        { keyTimeout: 3_000 },
      );
      const { state, remaining } = await driver().check({ key, owner: 'nobody' });
      expect(state).toBe('taken');
      expect(remaining).toBeGreaterThan(minHold - 2_000);
    });

    it('of a re-entrant call never shortens that of the outer one', async () => {
      await locks.using(key, () => locks.using(key, () => undefined, { minHold: 1 }), { minHold: 20_000 });
      const { remaining } = await driver(locks).check({ key, owner: 'nobody' });
      expect(remaining).toBeGreaterThan(10_000);
    });

    it('does not keep a key that was given up before it was granted', async () => {
      const late = open({
        misbehaving: (real) => ({ acquire: (request) => real.acquire(request).then((reply) => pause(50).then(() => reply)) }),
      });
      await rejection(late.acquire(key, { minHold: 60_000, signal: signalAfter(10) }));
      await eventually(isFree);
    });
  });

  describe('maxHold', () => {
    it('aborts the signal, frees the key within a keyTimeout, and leaves the call pending until its body ends', async () => {
      const end = gate();
      let settled = false;
      const leases: Lease[] = [];
      const body = async (lease: Lease) => {
        leases.push(lease);
        await end.passed;
        return 'done';
      };
      const call = rejection(locks.using(key, body, { maxHold: 200, keyTimeout: 500 })).finally(() => (settled = true));
      await eventually(() => leases.length === 1);
      const [lease] = leases as [Lease];
      const aborted = new Promise<number>((resolve) => lease.signal.addEventListener('abort', () => resolve(performance.now())));
      const start = performance.now();
      expect((await aborted) - start).toBeGreaterThan(100);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      await eventually(isFree);
      expect(settled).toBe(false);
      end.open();
      const error = (await call) as LockLostError;
      expect(error).toMatchObject({ name: 'LockLostError', result: 'done', key });
      expect(error.cause).toBe(lease.signal.reason);
    });

    it('does not spoil the result of a body that stops when the signal aborts', async () => {
      const stopping = (lease: Lease) => new Promise((resolve) => lease.signal.addEventListener('abort', () => resolve('stopped')));
      expect(await locks.using(key, stopping, { maxHold: 20, keyTimeout: 30_000 })).toBe('stopped');
      expect(await isFree()).toBe(true);
    });

    it('frees the key of a bare lease whose holder forgot it', async () => {
      const lease = await locks.acquire(key, { maxHold: 100, keyTimeout: 200 });
      await eventually(isFree);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(lease.signal.aborted).toBe(true);
    });

    it('of an inner call aborts the signal of that call only', async () => {
      await locks.using(
        key,
        (outer) =>
          locks.using(
            key,
            async (inner) => {
              await eventually(() => inner.signal.aborted);
              expect(outer.signal.aborted).toBe(false);
              await outer.renew();
            },
            { maxHold: 20 },
          ),
        { keyTimeout: 30_000 },
      );
      expect(await isFree()).toBe(true);
    });

    it('of the outer call aborts the signals of all calls inside', async () => {
      const call = locks.using(
        key,
        () =>
          locks.using(key, async (inner) => {
            await eventually(() => inner.signal.aborted);
            return inner.signal.reason as unknown;
          }),
        { maxHold: 20, keyTimeout: 30_000 },
      );
      expect(await call).toBeInstanceOf(LockLostError);
    });

    it('of an inner call that outlives the outer one frees the key', async () => {
      const end = gate();
      const { child } = await locks.using(key, () => ({ child: rejection(locks.using(key, () => end.passed, { maxHold: 50 })) }), {
        keyTimeout: 300,
      });
      await eventually(isFree);
      end.open();
      expect(await child).toBeInstanceOf(LockLostError);
    });
  });
}
