import { passTime } from '../support/virtual-time.js';
import { currentLease, type Lease, LockLostError, type Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { changing, failing } from './misbehaviour.js';
import { rejection } from '../support/rejection.js';
import { long, type Setting } from './setting.js';

export function multiLeaseContract({ open, newKey, driver, isFree, takeAway, lose }: Setting): void {
  let locks: Locks;
  let [a, b]: [string, string] = ['', ''];
  beforeEach(() => {
    locks = open({ defaults: long });
    const prefix = newKey();
    [a, b] = [`${prefix}:a`, `${prefix}:b`];
  });

  const whenFree = () => eventually(async () => (await isFree(a)) && (await isFree(b)));
  /** Resolves when these locks have lost the first key, which the store forgets. */
  async function loseFirst(of: Locks): Promise<void> {
    const lost = new Promise((resolve) => of.on('lost', resolve));
    const { holder } = await driver().check({ key: a, owner: 'nobody' });
    await takeAway({ key: a, owner: holder! });
    await lost;
  }

  describe('the lease of several keys', () => {
    it('is all of them', async () => {
      const lease = await locks.multiLock([b, a]).acquire();
      const owners = lease.leases.map(({ owner }) => owner);
      expect(lease).toMatchObject({ key: `${a}, ${b}`, owner: owners.join(', '), fencingToken: null });
      expect(lease.leases.map(({ fencingToken }) => fencingToken)).toEqual([expect.any(Number), expect.any(Number)]);
      expect(lease.signal.aborted).toBe(false);
      await lease.renew();
      lease.assertHeld();
      expect([await isFree(a), await isFree(b)]).toEqual([false, false]);
      expect([await lease.release(), await lease.release()]).toEqual([true, true]);
      expect([await isFree(a), await isFree(b)]).toEqual([true, true]);
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
    });

    it.each([0, 1])('is lost with the first of them that is (the one at %p), and says so (G3)', async (which) => {
      const lease = await locks.multiLock([a, b]).acquire();
      const aborted = jest.fn();
      lease.signal.addEventListener('abort', aborted);
      expect(await lose(lease.leases[which]!)).toBeInstanceOf(LockLostError);
      expect(aborted).toHaveBeenCalledTimes(1);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(await rejection(lease.renew())).toBeInstanceOf(LockLostError);
      // The other one is given back all the same.
      expect(await lease.release()).toBe(false);
      expect(await lease.release()).toBe(false);
      await whenFree();
    });

    it('is as long as the shortest of them', async () => {
      const lease = await locks.multiLock([a, b]).acquire({ keyTimeout: 30_000 });
      await passTime(20);
      await lease.leases[1]!.renew();
      // Each is a moment later than the one before.
      const [longer, shortest, whole] = [lease.leases[1]!.remaining(), lease.leases[0]!.remaining(), lease.remaining()];
      expect(whole).toBeLessThanOrEqual(shortest);
      expect(whole).toBeGreaterThan(shortest - 10);
      expect(whole).toBeLessThan(longer - 10);
    });

    it('is renewed as a whole: one store without an answer is no loss', async () => {
      const shaky = open({ misbehaving: failing('renew') });
      const lease = await locks.multiLock([a, shaky.mutex(b)]).acquire();
      expect(await rejection(lease.renew())).toBeInstanceOf(StoreError);
      lease.assertHeld();
      await lose(lease.leases[0]!);
      expect(await rejection(lease.renew())).toBeInstanceOf(LockLostError);
    });

    it('of one key is that of its key', async () => {
      const lease = await locks.multiLock([a]).acquire();
      const [only] = lease.leases;
      expect(lease).toMatchObject({ key: a, owner: only!.owner, fencingToken: only!.fencingToken });
      expect(lease.signal).toBe(only!.signal);
    });

    it('is released whole, though a store gives no answer', async () => {
      const shaky = open({ misbehaving: failing('release', 1) });
      const lease = await locks.multiLock([shaky.mutex(a), b]).acquire();
      expect(await lease.release()).toBe(true);
      expect(await isFree(b)).toBe(true);
      await eventually(() => isFree(a));
    });
  });

  describe('under several keys', () => {
    it('the call chain holds each of them, and the current lease is that of all', async () => {
      await locks.multiLock([a, b]).using(async (lease) => {
        expect(currentLease()).toBe(lease);
        for (const [index, key] of [a, b].entries()) {
          const owner = await locks.using(key, (inner) => (currentLease() === inner ? inner.owner : ''), { waitTimeout: 0 });
          expect(owner).toBe(lease.leases[index]!.owner);
        }
        expect(await locks.multiLock([b, a]).using((inner) => inner.owner, { waitTimeout: 0 })).toBe(lease.owner);
        expect(currentLease()).toBe(lease);
        await lease.leases[1]!.release();
        expect(await locks.using(b, ({ owner }) => owner === lease.leases[1]!.owner, { waitTimeout: 0 })).toBe(false);
        await lease.release();
        expect(currentLease()).toBeUndefined();
      });
    });

    it('what the chain holds already is taken again, and stays when all are released', async () => {
      await locks.using(a, async (outer) => {
        await locks.multiLock([a, b]).using((lease) => expect(lease.leases[0]!.owner).toBe(outer.owner));
        outer.assertHeld();
        expect(await isFree(a)).toBe(false);
        expect(await isFree(b)).toBe(true);
        expect(await rejection(locks.multiLock([a, b]).acquire({ reentrant: false, waitTimeout: 20 }))).toBeInstanceOf(LockTimeoutError);
      });
    });

    it('a result comes with a LockLostError where one was lost, and an error as it is (G10)', async () => {
      const lock = locks.multiLock([a, b]);
      const work = async ({ leases }: { leases: readonly Lease[] }) => {
        await takeAway(leases[1]!);
        return 'result';
      };
      expect(await rejection(lock.using(work))).toMatchObject({ name: 'LockLostError', result: 'result', key: `${a}, ${b}` });
      expect(await lock.using(work, { onLost: 'ignore' })).toBe('result');
      const failing = lock.using((lease) => work(lease).then(() => Promise.reject(new Error('its own'))));
      expect(await rejection(failing)).toEqual(new Error('its own'));
      expect(await isFree(a)).toBe(true);
    });

    it('no body starts unless all are held: what was lost in the wait for another is taken again, also with a minHold (G1)', async () => {
      for (const minHold of [0, 60_000]) {
        const holder = await open().acquire(b, long);
        const taken: string[] = [];
        const forget = locks.on('acquired', ({ key }) => taken.push(key));
        const work = (lease: Lease & { leases: readonly Lease[] }) => {
          lease.assertHeld();
          return lease.leases.map(({ key }) => key);
        };
        const running = locks.multiLock([a, b]).using(work, { waitTimeout: Infinity, keyTimeout: 300, minHold });
        await eventually(() => taken.length === 1);
        await loseFirst(locks);
        await holder.release();
        expect(await running).toEqual([a, b]);
        expect(taken).toEqual([a, b, a, b]);
        forget();
      }
    });

    it('no body starts when its wait timeout ends and one of them is lost (G1)', async () => {
      const slow = gate();
      const late = open({
        misbehaving: changing('acquire', (send, { key }) => (key === b ? slow.passed.then(send) : send())),
        defaults: long,
      });
      const body = jest.fn();
      const acquired = new Promise((resolve) => late.on('acquired', resolve));
      const running = rejection(late.multiLock([a, b]).using(body, { waitTimeout: 0, keyTimeout: 300 }));
      await acquired;
      await loseFirst(late);
      slow.open();
      expect(await running).toBeInstanceOf(LockLostError);
      expect(body).not.toHaveBeenCalled();
      await eventually(() => isFree(b));
    });
  });

  describe('what is said of how long they are held', () => {
    it('by minHold counts from when all are held, and keeps none that is released before', async () => {
      const holder = await open().acquire(b, long);
      expect(await locks.multiLock([a, b]).tryAcquire({ minHold: 60_000 })).toBeNull();
      await eventually(() => isFree(a));
      await holder.release();
      await (await locks.multiLock([a, b]).acquire({ minHold: 30_000, keyTimeout: 1_000 })).release();
      for (const key of [a, b]) {
        const { state, remaining } = await driver().check({ key, owner: 'nobody' });
        expect(state).toBe('taken');
        expect(remaining).toBeGreaterThan(20_000);
      }
    });

    it('by minHold keeps none where one of them cannot be kept: they are taken again, or released', async () => {
      const shaky = open({ misbehaving: failing('renew', 2) });
      const lock = locks.multiLock([a, shaky.mutex(b)]);
      const minHold = 60_000;
      expect(await rejection(lock.acquire({ minHold, keyTimeout: 10_000, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
      await whenFree();
      const lease = await lock.acquire({ minHold, keyTimeout: 10_000, waitTimeout: 5_000 });
      lease.assertHeld();
    });

    it('by maxHold counts from when all are held, and ends them together', async () => {
      const holder = await open().acquire(b, long);
      const waiting = locks.multiLock([a, b]).acquire({ maxHold: 300, waitTimeout: Infinity, keyTimeout: 200 });
      await passTime(400);
      const start = performance.now();
      await holder.release();
      const lease = await waiting;
      await eventually(() => lease.signal.aborted);
      expect(performance.now() - start).toBeGreaterThan(299);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      await whenFree();
    });
  });
}
