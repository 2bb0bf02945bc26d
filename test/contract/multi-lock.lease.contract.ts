import { currentLease, type Lease, LockLostError, type Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewalBy, renewing } from './renewing.js';
import { outage } from './store-failures.js';
import { pause } from '../support/time.js';

const long = { keyTimeout: 60_000, retryInterval: 60_000 };

export function multiLeaseContract(makeStore: MakeStore): void {
  const { open, newKey } = locksOpener(makeStore);
  let locks: Locks;
  let [a, b]: [string, string] = ['', ''];

  beforeEach(() => {
    locks = open({ defaults: long });
    const prefix = newKey();
    [a, b] = [`${prefix}:a`, `${prefix}:b`];
  });

  const isFree = async (key: string) => {
    const lease = await open().tryAcquire(key, { reentrant: false });
    return lease !== null && (await lease.release());
  };
  const takeAway = ({ key, owner }: Lease) => open().store.mutex.release({ key, owner, keepFor: 0 });
  const lose = async (lease: Lease) => {
    await takeAway(lease);
    expect(await rejection(lease.renew())).toBeInstanceOf(LockLostError);
  };

  describe('the lease of several keys', () => {
    it('is all of them', async () => {
      const lease = await locks.multiLock([b, a]).acquire();
      const owners = lease.leases.map(({ owner }) => owner);
      expect(lease).toMatchObject({ key: `${a}, ${b}`, owner: owners.join(', '), fencingToken: null });
      expect(lease.leases.map(({ fencingToken }) => fencingToken)).toEqual([expect.any(Number), expect.any(Number)]);
      expect(lease.signal.aborted).toBe(false);
      await lease.renew();
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
      expect(await lease.release()).toBe(true);
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
    });

    it('of one key is that of its key', async () => {
      const lease = await locks.multiLock([a]).acquire();
      const [only] = lease.leases;
      expect(lease).toMatchObject({ key: a, owner: only!.owner, fencingToken: only!.fencingToken });
      expect(lease.signal).toBe(only!.signal);
    });

    it.each([0, 1])('is lost with the first of them that is (the one at %p), and says so (G3)', async (which) => {
      const lease = await locks.multiLock([a, b]).acquire();
      const aborted = jest.fn();
      lease.signal.addEventListener('abort', aborted);
      await lose(lease.leases[which]!);
      expect(aborted).toHaveBeenCalledTimes(1);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(await rejection(lease.renew())).toBeInstanceOf(LockLostError);
      // The other one is given back all the same.
      expect(await lease.release()).toBe(false);
      expect(await lease.release()).toBe(false);
      await eventually(async () => (await isFree(a)) && (await isFree(b)));
    });

    it('is as long as the shortest of them', async () => {
      const lease = await locks.multiLock([a, b]).acquire({ keyTimeout: 30_000 });
      await pause(20);
      await lease.leases[1]!.renew();
      // Each is a moment later than the one before.
      const [longer, shortest, whole] = [lease.leases[1]!.remaining(), lease.leases[0]!.remaining(), lease.remaining()];
      expect(whole).toBeLessThanOrEqual(shortest);
      expect(whole).toBeGreaterThan(shortest - 10);
      expect(whole).toBeLessThan(longer - 10);
    });

    it('is renewed as a whole: one store without an answer is no loss', async () => {
      const shaky = open({ misbehaving: () => ({ renew: renewing(() => Promise.reject(outage())) }) });
      const lease = await locks.multiLock([a, shaky.mutex(b)]).acquire();
      expect(await rejection(lease.renew())).toBeInstanceOf(StoreError);
      lease.assertHeld();
      await lose(lease.leases[0]!);
      expect(await rejection(lease.renew())).toBeInstanceOf(LockLostError);
    });

    it('is given back whole, though a store gives no answer', async () => {
      let failures = 1;
      const shaky = open({
        misbehaving: (real) => ({ release: (request) => (failures-- > 0 ? Promise.reject(outage()) : real.release(request)) }),
      });
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

    it('what the chain holds already is taken again, and stays when all are given back', async () => {
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

    it('no body starts unless all are held: what was lost in the wait for another is taken again (G1)', async () => {
      const holder = await open().acquire(b, long);
      const told: string[] = [];
      locks.on('acquired', ({ key }) => told.push(key));
      const running = locks.multiLock([a, b]).using(
        (lease) => {
          lease.assertHeld();
          return lease.leases.map(({ key }) => key);
        },
        { waitTimeout: Infinity, keyTimeout: 300 },
      );
      await eventually(() => told.length === 1);
      // The store forgets the first one: its renewal finds out.
      const lost = new Promise((resolve) => locks.on('lost', resolve));
      const { holder: owner } = await open().store.mutex.check({ key: a, owner: 'nobody' });
      await takeAway({ key: a, owner } as Lease);
      await lost;
      await holder.release();
      expect(await running).toEqual([a, b]);
      expect(told).toEqual([a, b, a, b]);
    });

    it('no body starts when its patience ends and one of them is lost (G1)', async () => {
      const slow = gate();
      const late = open({
        misbehaving: (real) => ({
          acquire: (request) => (request.key === b ? slow.passed : Promise.resolve()).then(() => real.acquire(request)),
        }),
        defaults: long,
      });
      const body = jest.fn();
      const acquired = new Promise<{ owner: string }>((resolve) => late.on('acquired', resolve));
      const running = rejection(late.multiLock([a, b]).using(body, { waitTimeout: 0, keyTimeout: 300 }));
      const { owner } = await acquired;
      const lost = new Promise((resolve) => late.on('lost', resolve));
      await takeAway({ key: a, owner } as Lease);
      await lost;
      slow.open();
      expect(await running).toBeInstanceOf(LockLostError);
      expect(body).not.toHaveBeenCalled();
      await eventually(() => isFree(b));
    });
  });

  describe('what is said of how long they are held', () => {
    it('by minHold counts from when all are held, and keeps none that is given back before', async () => {
      const holder = await open().acquire(b, long);
      expect(await locks.multiLock([a, b]).tryAcquire({ minHold: 60_000 })).toBeNull();
      await eventually(() => isFree(a));
      await holder.release();
      await (await locks.multiLock([a, b]).acquire({ minHold: 30_000, keyTimeout: 1_000 })).release();
      for (const key of [a, b]) {
        const { state, remaining } = await open().store.mutex.check({ key, owner: 'nobody' });
        expect(state).toBe('taken');
        expect(remaining).toBeGreaterThan(20_000);
      }
    });

    it('by minHold keeps none where one of them cannot be kept: they are taken anew, or given back', async () => {
      let failures = 2;
      const shaky = open({
        misbehaving: (real) => ({ renew: renewing((request) => (failures-- > 0 ? Promise.reject(outage()) : renewalBy(real, request))) }),
      });
      const lock = locks.multiLock([a, shaky.mutex(b)]);
      const minHold = 60_000;
      expect(await rejection(lock.acquire({ minHold, keyTimeout: 10_000, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
      await eventually(async () => (await isFree(a)) && (await isFree(b)));
      const lease = await lock.acquire({ minHold, keyTimeout: 10_000, waitTimeout: 5_000 });
      expect(failures).toBeLessThan(0);
      lease.assertHeld();
    });

    it('by minHold counts for what was lost in the wait for another, and is taken again', async () => {
      const holder = await open().acquire(b, long);
      const told: string[] = [];
      locks.on('acquired', ({ key }) => told.push(key));
      const waiting = locks.multiLock([a, b]).acquire({ waitTimeout: Infinity, keyTimeout: 300, minHold: 60_000 });
      await eventually(() => told.length === 1);
      const lost = new Promise((resolve) => locks.on('lost', resolve));
      const { holder: owner } = await open().store.mutex.check({ key: a, owner: 'nobody' });
      await takeAway({ key: a, owner } as Lease);
      await lost;
      await holder.release();
      (await waiting).assertHeld();
      expect(told).toEqual([a, b, a, b]);
    });

    it('by maxHold counts from when all are held, and ends them together', async () => {
      const holder = await open().acquire(b, long);
      const waiting = locks.multiLock([a, b]).acquire({ maxHold: 300, waitTimeout: Infinity, keyTimeout: 200 });
      await pause(400);
      const start = performance.now();
      await holder.release();
      const lease = await waiting;
      await eventually(() => lease.signal.aborted);
      expect(performance.now() - start).toBeGreaterThan(299);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      await eventually(async () => (await isFree(a)) && (await isFree(b)));
    });
  });
}
