import { getEventListeners } from 'node:events';
import { type Lease, type Locks, LockAbortedError, LockTimeoutError, type WakeUps } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { GarbageCount } from './garbage.js';
import { heldBy } from './held-by.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { outage } from './store-failures.js';
import { signalAfter } from '../support/time.js';

interface Queues {
  readonly own: Set<unknown>;
  readonly shared: Map<unknown, Map<string, unknown>>;
  readonly idle: { readonly size: number };
}

/** How many local queues there are: those that somebody uses, and those that are kept. */
function queuesOf(locks: Locks): { used: number; kept: number } {
  const { own, shared, idle } = (locks as unknown as { queues: Queues }).queues;
  const all = [...shared.values()].reduce((size, byKey) => size + byKey.size, 0);
  return { used: own.size + all - idle.size, kept: idle.size };
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
      return () => {
        listening.delete(owner);
        forget();
      };
    },
  };
}

/** @param remains what there is at the store that does not expire by itself. */
export function cleanupContract(makeStore: MakeStore, kind: Kind, remains: () => Promise<string[]> | string[]): void {
  describe('G7 after a release or a give-up nothing stays behind', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    const CYCLES = 1_000;
    let locks: Locks;

    beforeEach(() => (locks = open()));
    afterEach(() => void jest.restoreAllMocks());

    it('at the store, after a thousand keys were used by turns, and given up by others', async () => {
      const locks = open({ namespace: 'cleanup:' });
      const signal = signalAfter(60_000);
      for (let done = 0; done < CYCLES; done += 50) {
        const cycle = async (index: number) => {
          const key = newKey();
          const lease = await locks.acquire(key, { keyTimeout: 30_000, waitTimeout: Infinity });
          const fair = index % 2 === 0;
          const waiting = rejection(locks.acquire(key, { keyTimeout: 30_000, waitTimeout: 5, fair, signal }));
          expect(await waiting).toBeInstanceOf(LockTimeoutError);
          await lease.release();
        };
        await Promise.all(Array.from({ length: 50 }, (_, index) => cycle(index)));
      }
      await eventually(async () => expect((await remains()).filter((name) => name.includes('cleanup:'))).toEqual([]));
    });

    it('in memory, after a thousand leases were released', async () => {
      const leases = new GarbageCount();
      const key = newKey();
      for (let done = 0; done < CYCLES; done++) {
        await locks.using(key, (lease) => leases.add(lease), { maxHold: 60_000, waitTimeout: Infinity });
      }
      await eventually(async () => expect(await leases.reachable()).toBeLessThan(10));
      expect(heldBy(locks)).toBe(0);
    });

    it('in memory, after a thousand calls were given up by time-out or abort', async () => {
      const signals = new GarbageCount();
      const key = newKey();
      await locks.acquire(key, { keyTimeout: 60_000 });
      const giveUp = async (index: number) => {
        const caller = new AbortController();
        signals.add(caller.signal);
        const call = rejection(locks.acquire(key, { signal: caller.signal, fair: index % 2 === 0, waitTimeout: index % 3 ? 60_000 : 5 }));
        if (index % 3) setImmediate(() => caller.abort());
        await call;
      };
      for (let done = 0; done < CYCLES; done += 100) await Promise.all(Array.from({ length: 100 }, (_, index) => giveUp(index)));
      await eventually(async () => expect(await signals.reachable()).toBeLessThan(10));
    });

    it('in memory, of hundreds who waited for a key of another process, and got it or gave up', async () => {
      const requests = new GarbageCount();
      const listening = new Set<string>();
      const waiters = open({
        misbehaving: (real) => ({
          acquire(request) {
            requests.add(request);
            return real.acquire(request);
          },
          ...(real.wakeUps && { wakeUps: noting(real.wakeUps, listening) }),
        }),
      });
      const cycle = async () => {
        const key = newKey();
        const holder = await locks.acquire(key, { keyTimeout: 60_000 });
        const next = waiters.acquire(key, { keyTimeout: 60_000, waitTimeout: Infinity, fair: true });
        await rejection(waiters.acquire(key, { waitTimeout: 20, fair: true }));
        await holder.release();
        await (await next).release();
      };
      for (let done = 0; done < 300; done += 100) await Promise.all(Array.from({ length: 100 }, cycle));
      await eventually(async () => expect(await requests.reachable()).toBeLessThan(10));
      expect(listening.size).toBe(0);
    });

    it('in memory, no queue of a key that nobody wants any more', async () => {
      const others = open();
      const queues = (): number => queuesOf(others).used;
      const [free, taken] = [newKey(), newKey()];
      await locks.acquire(taken, { keyTimeout: 60_000 });
      const lease = await others.acquire(free, { keyTimeout: 60_000 });
      const local = others.acquire(free, { keyTimeout: 60_000 });
      const waiting = [taken, free].flatMap((key) => [
        rejection(others.acquire(key, { waitTimeout: 0 })),
        rejection(others.acquire(key, { waitTimeout: 30, fair: true })),
        rejection(others.acquire(key, { waitTimeout: 30, keyTimeout: 60_000 })),
      ]);
      // One for the holder and those behind it.
      expect(queues()).toBe(6);
      await Promise.all(waiting);
      expect(queues()).toBe(1);
      await lease.release();
      await (await local).release();
      expect(queues()).toBe(0);
    });

    it('in memory, no queue at all once the locks are closed, not even of those who held then', async () => {
      const others = open();
      await (await others.acquire(newKey())).release();
      const held = await others.acquire(newKey(), { keyTimeout: 60_000 });
      await others.close();
      expect(await held.release()).toBe(false);
      expect(queuesOf(others)).toEqual({ used: 0, kept: 0 });
    });

    it('in memory, of those to whom a lease was passed on, while somebody still has it', async () => {
      const turns = new GarbageCount();
      const kept: Lease[] = [];
      const key = newKey();
      const options = { keyTimeout: 60_000, waitTimeout: Infinity };
      const note = (lease: Lease): void => {
        // That of a multi-lock is made of others.
        const { leases: [one] = [lease] } = lease as unknown as { leases?: readonly Lease[] };
        turns.add((one as unknown as { turn: object }).turn);
        if (kept.length < 5) kept.push(lease);
      };
      await Promise.all(Array.from({ length: 100 }, () => locks.using(key, note, options)));
      await eventually(async () => expect(await turns.reachable()).toBeLessThan(10));
      expect(kept.map((lease) => lease.remaining())).toEqual(Array(5).fill(0));
    });

    it('in memory, one queue of a key that was wanted by who hears of a time-out, for that moment only', async () => {
      const others = open();
      const key = newKey();
      const holder = await locks.acquire(key, { keyTimeout: 60_000 });
      const again: Promise<unknown>[] = [];
      others.on('timeout', () => {
        const caller = new AbortController();
        again.push(rejection(others.acquire(key, { waitTimeout: 60_000, signal: caller.signal })));
        caller.abort();
      });
      expect(await rejection(others.acquire(key, { waitTimeout: 20 }))).toBeInstanceOf(LockTimeoutError);
      expect(await again[0]).toBeInstanceOf(LockAbortedError);
      await eventually(() => expect(queuesOf(others)).toEqual({ used: 0, kept: 1 }));
      await holder.release();
    });

    it('in memory, no more than a thousand queues for the next callers of their keys', async () => {
      const others = open();
      await Promise.all(Array.from({ length: 1_200 }, async () => (await others.acquire(newKey(), { keyTimeout: 60_000 })).release()));
      expect(queuesOf(others)).toEqual({ used: 0, kept: 1_000 });
    });

    it('no timer of a wait that is over, however it ended', async () => {
      const set = jest.spyOn(globalThis, 'setTimeout');
      const clear = jest.spyOn(globalThis, 'clearTimeout');
      // Nobody else has timers as long as these.
      const timers = () =>
        set.mock.results
          .filter((_, index) => set.mock.calls[index]![1]! > 20_000)
          .map(({ value }) => value as NodeJS.Timeout)
          .filter((timer) => timer.hasRef() && clear.mock.calls.every(([cleared]) => cleared !== timer)).length;
      const patient = { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 60_000 };
      const key = newKey();
      const holder = await locks.acquire(key, patient);
      const waiting = [
        rejection(locks.acquire(key, { ...patient, waitTimeout: 500 })),
        rejection(open().acquire(key, { ...patient, signal: signalAfter(500) })),
        rejection(open().acquire(key, { ...patient, waitTimeout: 500, fair: true })),
      ];
      await eventually(() => timers() > 0);
      await Promise.all(waiting);
      expect(timers()).toBe(0);
      const next = locks.acquire(key, { ...patient, signal: signalAfter(100) });
      const last = locks.acquire(key, patient);
      await eventually(() => timers() > 1);
      await rejection(next);
      await holder.release();
      await (await last).release();
      expect(timers()).toBe(0);
    });

    it('no listener on the caller’s signal, of which a hundred waiters share one', async () => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error) => warnings.push(warning);
      process.on('warning', onWarning);
      const key = newKey();
      const { signal } = new AbortController();
      const listeners = () => getEventListeners(signal, 'abort').length;
      const holder = await locks.acquire(key, { signal });
      expect(listeners()).toBe(0);
      const acquires = Array.from({ length: 100 }, (_, index) =>
        locks.acquire(key, { signal, fair: index % 2 === 0, waitTimeout: 100 }).catch((error: unknown) => error),
      );
      await eventually(() => listeners() === 1);
      for (const result of await Promise.all(acquires)) expect(result).toBeInstanceOf(LockTimeoutError);
      await eventually(() => listeners() === 0);
      await holder.release();
      await locks.using(key, () => undefined, { signal });
      await rejection(open({ misbehaving: () => ({ acquire: () => Promise.reject(outage()) }) }).acquire(key, { signal, waitTimeout: 10 }));
      expect(listeners()).toBe(0);
      process.off('warning', onWarning);
      expect(warnings).toEqual([]);
    });

    it('no renewal of a lease that was released or given up, and no loss of it', async () => {
      const renewed: string[] = [];
      const recorded = open({
        misbehaving: (real) => ({ renew: (batch) => (renewed.push(...batch.map(({ owner }) => owner)), real.renew(batch)) }),
      });
      const lost: unknown[] = [];
      recorded.on('lost', (event) => lost.push(event));
      const key = newKey();
      const released = await recorded.acquire(key, { keyTimeout: 100 });
      await released.release();
      renewed.length = 0;
      await rejection(recorded.acquire(key, { keyTimeout: 100, signal: AbortSignal.abort() }));
      const other = await recorded.acquire(newKey(), { keyTimeout: 900 });
      await eventually(() => renewed.length >= 2);
      expect(new Set(renewed)).toEqual(new Set([other.owner]));
      expect(lost).toEqual([]);
    });
  });
}
