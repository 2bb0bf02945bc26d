import '../support/virtual-time.js';
import { getEventListeners } from 'node:events';
import { type Lease, LockAbortedError, type Locks, LockTimeoutError, type WakeUps } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { signalAfter } from '../support/time.js';
import { timersLeft } from './timers-left.js';
import { GarbageCount } from './garbage.js';
import { heldBy } from './held-by.js';
import { failing } from './misbehaviour.js';
import { rejection } from '../support/rejection.js';
import { long, patient, type Setting } from './setting.js';

/** How many local queues there are. */
function queuesOf(locks: Locks): number {
  return locks['engine'].queues.all.length;
}

/** Notes the owners that listen for wake-ups. */
function noting(wakeUps: WakeUps, listening: Set<string>): WakeUps {
  return {
    get isOpen() {
      return wakeUps.isOpen;
    },
    open: (warn) => wakeUps.open(warn),
    check: () => wakeUps.check?.(),
    listen(owner, wake) {
      const forget = wakeUps.listen(owner, wake);
      listening.add(owner);
      return () => [listening.delete(owner), forget()];
    },
  };
}

const many = <T>(count: number, make: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

/** @param remains what there is at the store that does not expire by itself. */
export function cleanupContract({ open, newKey }: Setting, remains: () => Promise<string[]> | string[]): void {
  describe('G7 after a release or a give-up nothing stays behind', () => {
    const CYCLES = 300;
    let locks: Locks;
    let key: string;
    beforeEach(() => {
      locks = open();
      key = newKey();
    });
    afterEach(() => void jest.restoreAllMocks());
    const fewStay = (objects: GarbageCount) => eventually(async () => expect(await objects.reachable()).toBeLessThan(10));

    it('at the store, after hundreds of keys were used by turns, and given up by others', async () => {
      const named = open({ namespace: 'cleanup:' });
      const signal = signalAfter(60_000);
      const cycle = async (index: number) => {
        const each = newKey();
        const lease = await named.acquire(each, { keyTimeout: 30_000, waitTimeout: Infinity });
        const options = { keyTimeout: 30_000, waitTimeout: 5, fair: index % 2 === 0, signal };
        expect(await rejection(named.acquire(each, options))).toBeInstanceOf(LockTimeoutError);
        await lease.release();
      };
      for (let done = 0; done < CYCLES; done += 50) await many(50, cycle);
      await eventually(async () => expect((await remains()).filter((name) => name.includes('cleanup:'))).toEqual([]));
    });

    it('in memory, after hundreds of leases were released', async () => {
      const leases = new GarbageCount();
      for (let done = 0; done < CYCLES; done++) {
        await locks.using(key, (lease) => leases.add(lease), { maxHold: 60_000, waitTimeout: Infinity });
      }
      await fewStay(leases);
      expect(heldBy(locks)).toBe(0);
    });

    it('in memory, after hundreds of calls were given up by time-out or abort', async () => {
      const signals = new GarbageCount();
      await locks.acquire(key, long);
      const giveUp = async (index: number) => {
        const caller = new AbortController();
        signals.add(caller.signal);
        const call = rejection(locks.acquire(key, { signal: caller.signal, fair: index % 2 === 0, waitTimeout: index % 3 ? 60_000 : 5 }));
        if (index % 3) setImmediate(() => caller.abort());
        await call;
      };
      for (let done = 0; done < CYCLES; done += 100) await many(100, giveUp);
      await fewStay(signals);
    });

    it('in memory, of hundreds who waited for a key of another process, and got it or gave up', async () => {
      const requests = new GarbageCount();
      const listening = new Set<string>();
      const waiters = open({
        misbehaving: (real) => ({
          acquire: (request) => (requests.add(request), real.acquire(request)),
          ...(real.wakeUps && { wakeUps: noting(real.wakeUps, listening) }),
        }),
      });
      const cycle = async () => {
        const each = newKey();
        const holder = await locks.acquire(each, long);
        const next = waiters.acquire(each, { keyTimeout: 60_000, waitTimeout: Infinity, fair: true });
        await rejection(waiters.acquire(each, { waitTimeout: 20, fair: true }));
        await holder.release();
        await (await next).release();
      };
      for (let done = 0; done < 300; done += 100) await many(100, cycle);
      await fewStay(requests);
      expect(listening.size).toBe(0);
    });

    it('in memory, no queue of a key that nobody wants any more', async () => {
      const others = open();
      const [free, taken] = [newKey(), newKey()];
      await locks.acquire(taken, long);
      const lease = await others.acquire(free, long);
      const local = others.acquire(free, long);
      const waiting = [taken, free].flatMap((each) => [
        rejection(others.acquire(each, { waitTimeout: 0 })),
        rejection(others.acquire(each, { waitTimeout: 30, fair: true })),
        rejection(others.acquire(each, { waitTimeout: 30, keyTimeout: 60_000 })),
      ]);
      // One for the holder and those behind it.
      expect(queuesOf(others)).toBe(6);
      await Promise.all(waiting);
      expect(queuesOf(others)).toBe(1);
      await lease.release();
      await (await local).release();
      expect(queuesOf(others)).toBe(0);
    });

    it('in memory, no queue at all once the locks are closed, not even of a holder', async () => {
      await (await locks.acquire(newKey())).release();
      const held = await locks.acquire(key, long);
      await locks.close();
      expect(await held.release()).toBe(false);
      expect(queuesOf(locks)).toBe(0);
    });

    it('in memory, of callers that got a lease passed on, while another one still has it', async () => {
      const turns = new GarbageCount();
      const kept: Lease[] = [];
      const note = (lease: Lease): void => {
        turns.add((lease as unknown as { turn: object }).turn);
        if (kept.length < 5) kept.push(lease);
      };
      await many(100, () => locks.using(key, note, { keyTimeout: 60_000, waitTimeout: Infinity }));
      await fewStay(turns);
      expect(kept.map((lease) => lease.remaining())).toEqual(Array(5).fill(0));
    });

    it('in memory, no queue of a key that a listener to a time-out wanted for a moment', async () => {
      const others = open();
      const holder = await locks.acquire(key, long);
      const again: Promise<unknown>[] = [];
      others.on('timeout', () => {
        const caller = new AbortController();
        again.push(rejection(others.acquire(key, { waitTimeout: 60_000, signal: caller.signal })));
        caller.abort();
      });
      expect(await rejection(others.acquire(key, { waitTimeout: 20 }))).toBeInstanceOf(LockTimeoutError);
      expect(await again[0]).toBeInstanceOf(LockAbortedError);
      await eventually(() => expect(queuesOf(others)).toBe(0));
      await holder.release();
    });

    it('no timer of a wait that is over, however it ended', async () => {
      // No other timer is as long as these.
      const left = timersLeft(20_000);
      const timers = () => left().filter((timer) => timer.hasRef()).length;
      const minute = { ...patient, waitTimeout: 60_000 };
      const holder = await locks.acquire(key, minute);
      const waiting = [
        rejection(locks.acquire(key, { ...minute, waitTimeout: 500 })),
        rejection(open().acquire(key, { ...minute, signal: signalAfter(500) })),
        rejection(open().acquire(key, { ...minute, waitTimeout: 500, fair: true })),
      ];
      await eventually(() => timers() > 0);
      await Promise.all(waiting);
      expect(timers()).toBe(0);
      const next = locks.acquire(key, { ...minute, signal: signalAfter(100) });
      const last = locks.acquire(key, minute);
      await eventually(() => timers() > 1);
      await rejection(next);
      await holder.release();
      await (await last).release();
      expect(timers()).toBe(0);
    });

    it('no listener on the caller’s signal, which a hundred waiters share', async () => {
      const warned = jest.fn();
      process.on('warning', warned);
      const { signal } = new AbortController();
      const listeners = () => getEventListeners(signal, 'abort').length;
      const holder = await locks.acquire(key, { signal });
      expect(listeners()).toBe(0);
      const acquires = many(100, (index) => rejection(locks.acquire(key, { signal, fair: index % 2 === 0, waitTimeout: 100 })));
      await eventually(() => listeners() === 1);
      for (const result of await acquires) expect(result).toBeInstanceOf(LockTimeoutError);
      await eventually(() => listeners() === 0);
      await holder.release();
      await locks.using(key, () => undefined, { signal });
      await rejection(open({ misbehaving: failing('acquire') }).acquire(key, { signal, waitTimeout: 10 }));
      expect(listeners()).toBe(0);
      process.off('warning', warned);
      expect(warned).not.toHaveBeenCalled();
    });

    it('no renewal of a lease that was released or given up, and no loss of it', async () => {
      const renewed = new Set<string>();
      const noted = open({
        misbehaving: (real) => ({ renew: (batch) => (batch.forEach(({ owner }) => renewed.add(owner)), real.renew(batch)) }),
      });
      const lost = jest.fn();
      noted.on('lost', lost);
      await (await noted.acquire(key, { keyTimeout: 100 })).release();
      await rejection(noted.acquire(key, { keyTimeout: 100, signal: AbortSignal.abort() }));
      renewed.clear();
      const other = await noted.acquire(newKey(), { keyTimeout: 900 });
      await eventually(() => renewed.has(other.owner));
      expect([...renewed]).toEqual([other.owner]);
      expect(lost).not.toHaveBeenCalled();
    });
  });
}
