import { type Lease, LockLostError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewalBy, renewing } from './renewing.js';
import { outage, refusal } from './store-failures.js';
import { firstTurnAfterStandingStill, pause, standStill } from '../support/time.js';

const validity = (keyTimeout: number) => keyTimeout - Math.max(2, keyTimeout / 100);

/** Expects that the lease ends `validity` after some instant between `earliest` and `latest`. */
function expectEnd(lease: Lease, keyTimeout: number, earliest: number, latest: number): void {
  const before = performance.now();
  const remaining = lease.remaining();
  const after = performance.now();
  expect(remaining).toBeGreaterThan(0);
  expect(before + remaining).toBeLessThanOrEqual(latest + validity(keyTimeout));
  expect(after + remaining).toBeGreaterThanOrEqual(earliest + validity(keyTimeout));
}

export function validityContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey, driver } = locksOpener(makeStore, kind);

  describe('G3 never claims an expired lease', () => {
    it('says so at once after the event loop stood still for longer than the lease', async () => {
      const lease = await open().acquire(newKey(), { keyTimeout: 100 });
      standStill(150);
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(lease.signal.aborted).toBe(true);
    });

    it('aborts the signal on the first turn of the event loop after, whatever the store says', async () => {
      const locks = open({ misbehaving: () => ({ renew: renewing(() => new Promise(() => undefined)) }) });
      const lease = await locks.acquire(newKey(), { keyTimeout: 100 });
      const { signal } = lease;
      await firstTurnAfterStandingStill(150);
      expect(signal.aborted).toBe(true);
      expect(signal.reason).toBeInstanceOf(LockLostError);
      expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', key: lease.key });
    });

    it('does not come back to life when the store still answers a renewal', async () => {
      const lease = await open().acquire(newKey(), { keyTimeout: 100 });
      standStill(110);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      await pause(50);
      expect(lease.remaining()).toBe(0);
      expect(await lease.release()).toBe(false);
    });

    it('does not come back to life by a renewal whose answer comes after the end', async () => {
      const answer = gate();
      const locks = open({ misbehaving: (real) => ({ renew: renewing((request) => answer.passed.then(() => renewalBy(real, request))) }) });
      const lease = await locks.acquire(newKey(), { keyTimeout: 150 });
      const renewal = rejection(lease.renew());
      await eventually(() => lease.remaining() === 0);
      answer.open();
      expect(await renewal).toBeInstanceOf(LockLostError);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
    });

    it('does not come back to life by a later renewal whose answer is read after the end', async () => {
      const answer = gate();
      const locks = open({
        misbehaving: (real) => ({
          renew: renewing((request) => renewalBy(real, request).then((reply) => answer.passed.then(() => reply))),
        }),
      });
      const lease = await locks.acquire(newKey(), { keyTimeout: 300 });
      // By then the watchdog has sent a renewal.
      await pause(200);
      standStill(120);
      expect(lease.remaining()).toBe(0);
      answer.open();
      for (let i = 0; i < 20; i++) await Promise.resolve();
      expect(lease.remaining()).toBe(0);
      expect(lease.signal.aborted).toBe(true);
    });

    it('rejects the call of a body that settles after the end, with its result', async () => {
      const call = open().using(newKey(), () => standStill(150), { keyTimeout: 100 });
      await expect(call).rejects.toBeInstanceOf(LockLostError);
    });

    it('counts from the request that was granted, however long the wait was before', async () => {
      const key = newKey();
      const holder = await open().acquire(key, { keyTimeout: 30_000 });
      const waiting = open().acquire(key, { keyTimeout: 500, waitTimeout: Infinity, retryInterval: 10 });
      await pause(600);
      const releasedAt = performance.now();
      await holder.release();
      const lease = await waiting;
      // The granted request may have been on its way before the release was.
      expectEnd(lease, 500, releasedAt - 50, performance.now());
    });

    it.each([1_000, 60_000])('counts %d ms from before the request, less the larger of 2 ms and 1 %%', async (keyTimeout) => {
      let sentAt = 0;
      const locks = open({
        misbehaving: (real) => ({
          async acquire(request) {
            sentAt = performance.now();
            const reply = await real.acquire(request);
            await pause(50);
            return reply;
          },
          renew: renewing(async (request) => {
            sentAt = performance.now();
            const reply = await renewalBy(real, request);
            await pause(50);
            return reply;
          }),
        }),
      });
      const calledAt = performance.now();
      const lease = await locks.acquire(newKey(), { keyTimeout });
      expectEnd(lease, keyTimeout, calledAt, sentAt);
      const renewedAt = performance.now();
      await lease.renew();
      expectEnd(lease, keyTimeout, renewedAt, sentAt);
    });
  });

  describe('G4 renews until the real end', () => {
    it('through renewals that fail for a while, which it tells as unknown', async () => {
      let fixed = 0;
      const locks = open({
        misbehaving: (real) => ({
          renew: renewing((request) => {
            fixed ||= performance.now() + 300;
            return performance.now() < fixed ? Promise.reject(outage()) : renewalBy(real, request);
          }),
        }),
      });
      const unknown: string[] = [];
      locks.on('unknown', ({ operation }) => unknown.push(operation));
      const aborted = await locks.using(
        newKey(),
        async (lease) => {
          await pause(1_100);
          lease.assertHeld();
          return lease.signal.aborted;
        },
        { keyTimeout: 1_000 },
      );
      expect(aborted).toBe(false);
      expect(unknown).toContain('renew');
    });

    it.each([
      ['time out', outage],
      ['are refused', refusal],
      ['break the driver', () => new TypeError('A fault of the driver.')],
    ])('and not less when all renewals %s', async (_how, failure) => {
      const locks = open({ misbehaving: () => ({ renew: renewing(() => Promise.reject(failure())) }) });
      const start = performance.now();
      const lease = await locks.acquire(newKey(), { keyTimeout: 300 });
      const end = new Promise<number>((resolve) => lease.signal.addEventListener('abort', () => resolve(performance.now())));
      expect((await end) - start).toBeGreaterThanOrEqual(validity(300));
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    });

    it('unless a reply says that the lease is lost: then the signal aborts long before the end', async () => {
      const locks = open();
      const lost: string[] = [];
      locks.on('lost', ({ key }) => lost.push(key));
      const lease = await locks.acquire(newKey(), { keyTimeout: 60_000 });
      await driver().release({ key: lease.key, owner: lease.owner, keepFor: 0 });
      const stranger = await open().acquire(lease.key);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      expect(lease.signal.aborted).toBe(true);
      expect(lost).toEqual([lease.key]);
      expect(await lease.release()).toBe(false);
      stranger.assertHeld();
      expect(await stranger.release()).toBe(true);
    });

    it('and finds by itself that the lease is lost', async () => {
      const lease = await open().acquire(newKey(), { keyTimeout: 1_500 });
      const start = performance.now();
      await driver().release({ key: lease.key, owner: lease.owner, keepFor: 0 });
      await eventually(() => lease.signal.aborted);
      expect(performance.now() - start).toBeLessThan(validity(1_500));
    });

    it('holds on when the caller’s own renewal gets no answer', async () => {
      const locks = open({ misbehaving: () => ({ renew: renewing(() => Promise.reject(outage())) }) });
      const lease = await locks.acquire(newKey(), { keyTimeout: 5_000 });
      await expect(lease.renew()).rejects.toBeInstanceOf(StoreError);
      lease.assertHeld();
      expect(lease.signal.aborted).toBe(false);
      expect(await lease.release()).toBe(true);
    });
  });
}
