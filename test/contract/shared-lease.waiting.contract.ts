import { setTimeout as pause } from 'node:timers/promises';
import { type Lease, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, type OpenOptions } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewing } from './renewing.js';
import { outage } from './store-failures.js';

/** For what a busy machine adds. */
const SLACK = 1_500;
const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** Those who wait for a share of a key, and what is left of all when they have gone; see {@link sharedLeaseContract}. */
export function sharedWaitingContract(makeStore: MakeStore, kind: Kind, whole: Kind, remains: () => Promise<string[]> | string[]): void {
  describe(`a ${kind.name}`, () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    const alone = locksOpener(makeStore, whole);
    let key: string;

    beforeEach(() => (key = newKey()));

    const block = () => alone.open().acquire(key, { keyTimeout: 60_000 });

    describe('G8 G9 those who wait', () => {
      /** One that waits in Locks of its own, and has its place when this resolves. */
      async function waiter(
        {
          retryInterval = 60_000,
          waitTimeout = Infinity,
          fair = false,
          signal,
        }: { retryInterval?: number; waitTimeout?: number; fair?: boolean; signal?: AbortSignal } = {},
        options: OpenOptions = {},
      ) {
        const placed = gate();
        const locks = open({
          misbehaving: (real) => ({
            acquire: (request) => real.acquire(request).finally(() => request.queue && placed.open()),
            ...options.misbehaving?.(real),
          }),
        });
        const lease = locks.acquire(key, { keyTimeout: 60_000, retryInterval, waitTimeout, fair, signal });
        lease.catch(() => undefined);
        if (!options.misbehaving) await placed.passed;
        return { lease, locks };
      }
      const soon = async (lease: Promise<Lease>, within = SLACK) => {
        const start = performance.now();
        (await lease).assertHeld();
        expect(performance.now() - start).toBeLessThan(within);
      };

      it.each([false, true])('get in together at once when the one is gone who had it alone (fair: %p)', async (fair) => {
        const holder = await block();
        const waiters = [await waiter({ fair }), await waiter({ fair })];
        await holder.release();
        for (const { lease } of waiters) await soon(lease);
      });

      it('get in within two retryIntervals when their wake-up is lost', async () => {
        const holder = await block();
        let places = 0;
        const { lease } = await waiter(
          { retryInterval: 300 },
          {
            misbehaving: (real) => ({
              acquire: (request) => real.acquire(request).finally(() => (places += Number(request.queue))),
              wakeUps: { isOpen: true, open: () => Promise.resolve(), listen: () => () => undefined },
            }),
          },
        );
        await eventually(() => places > 0);
        await holder.release();
        await soon(lease, 600 + SLACK);
      });

      it('get in when the lease of one that died has run out', async () => {
        await alone
          .open({ misbehaving: () => ({ renew: renewing(() => new Promise(() => undefined)) }) })
          .acquire(key, { keyTimeout: 400 });
        await soon((await waiter()).lease, 400 + 1_000 + SLACK);
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

      it('end by their patience and one requestTimeout in an outage, each with a StoreError of its own', async () => {
        const away = open({ requestTimeout: 200, misbehaving: () => ({ acquire: () => pause(200).then(() => Promise.reject(outage())) }) });
        const start = performance.now();
        const errors = await Promise.all([100, 300].map((waitTimeout) => rejection(away.acquire(key, { waitTimeout, retryInterval: 20 }))));
        expect(performance.now() - start).toBeLessThan(300 + 200 + SLACK);
        for (const error of errors) expect(error).toMatchObject({ code: 'LOCK_STORE', key });
        expect(errors[0]).not.toBe(errors[1]);
      });
    });

    describe('G7 after hundreds of shares were taken, waited for and given up nothing stays behind', () => {
      it('at the store and in the Locks', async () => {
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
  });
}
