import { LockLostError, LockTimeoutError, type Lease } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/**
 * What is otherwise where many hold a lock at a time.
 *
 * @param whole the kind that takes the same key alone: all permits, or the write lock.
 */
export function sharedLeaseContract(makeStore: MakeStore, kind: Kind, whole: Kind, remains: () => Promise<string[]> | string[]): void {
  describe(`a ${kind.name}`, () => {
    const { open, newKey, driver } = locksOpener(makeStore, kind);
    const alone = locksOpener(makeStore, whole);
    let key: string;

    beforeEach(() => (key = newKey()));

    const block = () => alone.open().acquire(key, { keyTimeout: 60_000 });
    const isFree = async () => {
      const lease = await alone.open().tryAcquire(key);
      return lease !== null && (await lease.release());
    };

    it('is held by many at once, each with an owner id of its own, until the last gives it back', async () => {
      const leases = [await open().acquire(key, patient), await open().acquire(key, patient)];
      expect(new Set(leases.map(({ owner }) => owner)).size).toBe(2);
      for (const lease of leases) lease.assertHeld();
      expect(await leases[0]!.release()).toBe(true);
      expect(await isFree()).toBe(false);
      await leases[1]!.renew();
      expect(await Promise.all([leases[1]!.release(), leases[1]!.release()])).toEqual([true, true]);
      expect(await isFree()).toBe(true);
    });

    it('is lost, which the call says unless it is to be ignored; its own error comes through (G4, G10)', async () => {
      const lose = ({ owner }: Lease) => driver().release({ key, owner, keepFor: 0 });
      const body = (lease: Lease) => lose(lease).then(() => 'done');
      expect(await rejection(open().using(key, body))).toMatchObject({ name: 'LockLostError', result: 'done', key });
      expect(await open().using(key, body, { onLost: 'ignore' })).toBe('done');
      const error = new Error('404');
      expect(await rejection(open().using(key, (lease) => lose(lease).then(() => Promise.reject(error))))).toBe(error);
    });

    it('is kept taken after the release by a minHold, and no longer', async () => {
      const start = performance.now();
      await open().using(key, () => undefined, { keyTimeout: 60_000, minHold: 400 });
      expect(await isFree()).toBe(false);
      await eventually(isFree);
      expect(performance.now() - start).toBeGreaterThanOrEqual(398);
    });

    it('is given back by close, which aborts the bodies that do not end in time', async () => {
      const hasty = open({ shutdownTimeout: 50 });
      const [end, leases] = [gate(), [] as Lease[]];
      const body = (lease: Lease) => (leases.push(lease), end.passed);
      const calls = [1, 2].map(() => rejection(hasty.using(key, body, { keyTimeout: 60_000 })));
      await eventually(() => leases.length === 2);
      await hasty.close();
      expect(await isFree()).toBe(true);
      for (const lease of leases) expect(lease.signal.aborted).toBe(true);
      end.open();
      for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockLostError);
    });

    describe('G8 G9 those who wait', () => {
      /** One that waits in Locks of its own, and has its place when this resolves. */
      async function waiter({ waitTimeout = Infinity, ...options }: { waitTimeout?: number; fair?: boolean; signal?: AbortSignal } = {}) {
        const placed = gate();
        const locks = open({
          misbehaving: (real) => ({ acquire: (request) => real.acquire(request).finally(() => request.queue && placed.open()) }),
        });
        const lease = locks.acquire(key, { ...patient, waitTimeout, ...options });
        lease.catch(() => undefined);
        await placed.passed;
        return { lease, locks };
      }

      it.each([false, true])('get in together at once when the one is gone who had it alone (fair: %p)', async (fair) => {
        const holder = await block();
        const waiters = [await waiter({ fair }), await waiter({ fair })];
        const start = performance.now();
        await holder.release();
        for (const { lease } of waiters) (await lease).assertHeld();
        expect(performance.now() - start).toBeLessThan(1_500);
      });

      it('end by their patience, by their signal, by stopWaiting and by close, and leave nothing behind', async () => {
        const holder = await block();
        const caller = new AbortController();
        const [late, aborted, stopped, closed] = [
          await waiter({ waitTimeout: 200 }),
          await waiter({ signal: caller.signal }),
          await waiter(),
          await waiter({ fair: true }),
        ];
        caller.abort('enough');
        stopped.locks.stopWaiting();
        const closing = closed.locks.close();
        expect(await rejection(late.lease)).toMatchObject({ code: 'LOCK_TIMEOUT', key });
        expect(await rejection(aborted.lease)).toMatchObject({ code: 'LOCK_ABORTED', reason: 'signal', cause: 'enough' });
        for (const { lease } of [stopped, closed])
          expect(await rejection(lease)).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
        await closing;
        await holder.release();
        await eventually(async () => expect(await remains()).toEqual(expect.not.arrayContaining([expect.stringContaining(key)])));
      });
    });

    it('G7 leaves nothing at the store and in the Locks, after hundreds were taken, waited for and given up', async () => {
      const locks = open({ namespace: 'cleanup:' });
      const strangers = alone.open({ namespace: 'cleanup:' });
      const cycle = async (index: number) => {
        const one = newKey();
        const holder = await strangers.acquire(one, patient);
        const calls = [locks.acquire(one, patient), locks.acquire(one, patient)];
        const fair = index % 2 === 0;
        expect(await rejection(locks.acquire(one, { ...patient, waitTimeout: 5, fair }))).toBeInstanceOf(LockTimeoutError);
        await holder.release();
        for (const lease of await Promise.all(calls)) await lease.release();
      };
      for (let done = 0; done < 200; done += 50) await Promise.all(Array.from({ length: 50 }, (_, index) => cycle(index)));
      await eventually(async () => expect((await remains()).filter((name) => name.includes('cleanup:'))).toEqual([]));
      const { own } = (locks as unknown as { queues: { own: Set<unknown> } }).queues;
      expect(own.size).toBe(0);
    });
  });
}
