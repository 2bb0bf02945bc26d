import { setTimeout as pause } from 'node:timers/promises';
import { type Lease, LockAbortedError, type LockEvents, LockLostError, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewalBy, renewing } from './renewing.js';
import { sharedWaitingContract } from './shared-lease.waiting.contract.js';
import { outage } from './store-failures.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/**
 * What a lock that many hold at a time has of every lock, seen by its holders and by those who wait for it.
 *
 * @param whole the kind that takes the same key alone: all permits, or the write lock.
 */
export function sharedLeaseContract(makeStore: MakeStore, kind: Kind, whole: Kind, remains: () => Promise<string[]> | string[]): void {
  sharedWaitingContract(makeStore, kind, whole, remains);
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
    const lose = ({ owner }: Lease) => driver().release({ key, owner, keepFor: 0 });

    describe('G1 starts no body without its lease', () => {
      const body = jest.fn();
      beforeEach(() => body.mockClear());
      afterEach(() => expect(body).not.toHaveBeenCalled());

      it.each([{ waitTimeout: 0 }, { waitTimeout: 60 }, { retryCount: 3, retryInterval: 20 }, { waitTimeout: 60, fair: true }])(
        'while another has the key alone, with %j',
        async (options) => {
          await block();
          expect(await rejection(open().using(key, body, options))).toBeInstanceOf(LockTimeoutError);
          expect(await open().using(key, body, { ...options, onTimeout: 'skip' })).toBeUndefined();
          expect(await open().using(key, body, { ...options, onTimeout: () => 'instead' })).toBe('instead');
          expect(await open().tryAcquire(key)).toBeNull();
        },
      );

      it('while the store is away: that is no contention', async () => {
        const away = open({ misbehaving: () => ({ acquire: () => Promise.reject(outage()) }) });
        expect(await rejection(away.using(key, body, { waitTimeout: 60, onTimeout: 'skip' }))).toBeInstanceOf(StoreError);
      });

      it('when the signal aborts with the request under way; the share is given back', async () => {
        const [sent, answer, caller] = [gate(), gate(), new AbortController()];
        const slow = open({
          misbehaving: (real) => ({
            async acquire(request) {
              const reply = await real.acquire(request);
              sent.open();
              await answer.passed;
              return reply;
            },
          }),
        });
        const call = rejection(slow.using(key, body, { signal: caller.signal }));
        await sent.passed;
        caller.abort();
        expect(await call).toBeInstanceOf(LockAbortedError);
        expect(await isFree()).toBe(false);
        answer.open();
        // Long before its lease is over.
        await eventually(isFree);
      });
    });

    describe('G4 G6 is held', () => {
      it('by many at once, each with an owner id of its own, until the last gives it back', async () => {
        const leases = [await open().acquire(key, patient), await open().acquire(key, patient)];
        expect(new Set(leases.map(({ owner }) => owner)).size).toBe(2);
        for (const lease of leases) lease.assertHeld();
        expect(await leases[0]!.release()).toBe(true);
        expect(await isFree()).toBe(false);
        await leases[1]!.renew();
        expect(await Promise.all([leases[1]!.release(), leases[1]!.release()])).toEqual([true, true]);
        expect(await isFree()).toBe(true);
      });

      it('for as long as the body runs, through renewals that fail for a while', async () => {
        let fixed = 0;
        const locks = open({
          misbehaving: (real) => ({
            renew: renewing((request) => {
              fixed ||= performance.now() + 250;
              return performance.now() < fixed ? Promise.reject(outage()) : renewalBy(real, request);
            }),
          }),
        });
        await locks.using(
          key,
          async (lease) => {
            await pause(1_000);
            lease.assertHeld();
            expect(await isFree()).toBe(false);
          },
          { keyTimeout: 800 },
        );
      });

      it('no longer than its lease, when it is not renewed', async () => {
        const lease = await open({ misbehaving: () => ({ renew: renewing(() => new Promise(() => undefined)) }) }).acquire(key, {
          keyTimeout: 200,
        });
        await eventually(() => lease.signal.aborted);
        expect(() => lease.assertHeld()).toThrow(LockLostError);
        await eventually(isFree);
      });

      it.each(['replies', 'requests'])('once, though the first %s of its acquire are lost', async (what) => {
        let losses = 2;
        const locks = open({
          misbehaving: (real) => ({
            async acquire(request) {
              const reply = what === 'replies' || losses === 0 ? await real.acquire(request) : undefined;
              if (losses-- > 0 || !reply) throw outage();
              return reply;
            },
          }),
        });
        const lease = await locks.acquire(key, { ...patient, retryInterval: 20 });
        expect(await isFree()).toBe(false);
        expect(await lease.release()).toBe(true);
        expect(await isFree()).toBe(true);
      });

      it('until its release arrives, which is repeated', async () => {
        let losses = 2;
        const locks = open({
          misbehaving: (real) => ({ release: (request) => (losses-- > 0 ? Promise.reject(outage()) : real.release(request)) }),
        });
        expect(await locks.using(key, () => 'done', { keyTimeout: 60_000 })).toBe('done');
        await eventually(isFree);
      });

      it('and lost, which the call says unless it is to be ignored; its own error comes through', async () => {
        const body = async (lease: Lease) => {
          await lose(lease);
          return 'done';
        };
        expect(await rejection(open().using(key, body))).toMatchObject({ name: 'LockLostError', result: 'done', key });
        expect(await open().using(key, body, { onLost: 'ignore' })).toBe('done');
        const error = new Error('404');
        expect(await rejection(open().using(key, (lease) => lose(lease).then(() => Promise.reject(error))))).toBe(error);
      });

      it('by a call chain that takes it again, with the same lease, and in between other keys', async () => {
        const locks = open();
        await locks.using(
          key,
          (outer) =>
            locks.using(newKey(), () =>
              locks.using(
                key,
                async (inner) => {
                  expect([inner.owner, inner.fencingToken]).toEqual([outer.owner, outer.fencingToken]);
                  await lose(inner);
                  await rejection(inner.renew());
                  expect(await rejection(locks.using(key, () => 'ran'))).toBeInstanceOf(LockLostError);
                  expect(outer.signal.aborted).toBe(true);
                },
                { onLost: 'ignore', waitTimeout: 0 },
              ),
            ),
          { onLost: 'ignore' },
        );
      });
    });

    describe('minHold and maxHold', () => {
      it('keep it taken after the release, and no longer', async () => {
        const start = performance.now();
        await open().using(key, () => undefined, { keyTimeout: 60_000, minHold: 400 });
        expect(await isFree()).toBe(false);
        await eventually(isFree);
        expect(performance.now() - start).toBeGreaterThanOrEqual(398);
      });

      it('abort the signal, and free it within a keyTimeout', async () => {
        const [started, end] = [gate(), gate()];
        const body = (lease: Lease) => {
          started.open();
          return end.passed.then((): unknown => lease.signal.reason);
        };
        const call = rejection(open().using(key, body, { maxHold: 100, keyTimeout: 300 }));
        await started.passed;
        expect(await isFree()).toBe(false);
        await eventually(isFree);
        end.open();
        expect(await call).toMatchObject({ name: 'LockLostError', result: expect.any(LockLostError) as LockLostError });
      });
    });

    describe('close', () => {
      it('aborts the bodies that do not end in time, and gives all shares back', async () => {
        const hasty = open({ shutdownTimeout: 50 });
        const [end, leases] = [gate(), [] as Lease[]];
        const body = (lease: Lease) => {
          leases.push(lease);
          return end.passed;
        };
        const calls = [1, 2].map(() => rejection(hasty.using(key, body, { keyTimeout: 60_000 })));
        await eventually(() => leases.length === 2);
        await hasty.close();
        expect(await isFree()).toBe(true);
        for (const lease of leases) expect(lease.signal.aborted).toBe(true);
        end.open();
        for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockLostError);
        expect(await rejection(hasty.acquire(key))).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
      });
    });

    describe('events', () => {
      it('tell who took it, that it waited, its end and its loss, once each', async () => {
        const locks = open();
        const told: string[] = [];
        const names: (keyof LockEvents)[] = ['acquired', 'waiting', 'released', 'timeout', 'lost'];
        for (const name of names) locks.on(name, (event) => (expect(event).toHaveProperty('key', key), told.push(name)));
        await locks.using(key, () => undefined);
        await locks.using(key, lose, { onLost: 'ignore' });
        await block();
        await rejection(locks.acquire(key, { waitTimeout: 30 }));
        expect(told).toEqual(['acquired', 'released', 'acquired', 'lost', 'waiting', 'timeout']);
      });
    });
  });
}
