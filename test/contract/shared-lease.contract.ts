import '../support/virtual-time.js';
import { LockTimeoutError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import type { Kind } from './kinds.js';
import type { MakeStore } from './open-locks.js';
import { rejection } from '../support/rejection.js';
import { long, patient, setting } from './setting.js';

/**
 * What is otherwise where many hold a lock at a time.
 *
 * @param whole the kind that takes the same key alone: all permits, or the write lock.
 */
export function sharedLeaseContract(makeStore: MakeStore, kind: Kind, whole: Kind, remains: () => Promise<string[]> | string[]): void {
  describe(`a ${kind.name}`, () => {
    const { open, newKey, waiter } = setting(makeStore, kind);
    const alone = setting(makeStore, whole);
    let key: string;
    beforeEach(() => (key = newKey()));
    const block = () => alone.open().acquire(key, long);
    const isFree = () => alone.isFree(key);

    it('is held by many at once, each with an owner id of its own, until the last releases it', async () => {
      const leases = [await open().acquire(key, patient), await open().acquire(key, patient)];
      expect(new Set(leases.map(({ owner }) => owner)).size).toBe(2);
      for (const lease of leases) lease.assertHeld();
      expect(await leases[0]!.release()).toBe(true);
      expect(await isFree()).toBe(false);
      await leases[1]!.renew();
      expect(await Promise.all([leases[1]!.release(), leases[1]!.release()])).toEqual([true, true]);
      expect(await isFree()).toBe(true);
    });

    describe('G8 G9 waiters', () => {
      it.each([false, true])('get in together at once when the one that had it alone is gone (fair: %p)', async (fair) => {
        const holder = await block();
        const waiters = [await waiter(key, { fair }), await waiter(key, { fair })];
        await holder.release();
        for (const { lease } of waiters) (await lease).assertHeld();
      });

      it('end by their wait timeout, by their signal, by stopWaiting and by close, and leave nothing behind', async () => {
        const holder = await block();
        const caller = new AbortController();
        const [late, aborted, stopped, closed] = [
          await waiter(key, { waitTimeout: 200 }),
          await waiter(key, { signal: caller.signal }),
          await waiter(key),
          await waiter(key, { fair: true }),
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
      expect(locks['engine'].queues.all).toEqual([]);
    });
  });
}
