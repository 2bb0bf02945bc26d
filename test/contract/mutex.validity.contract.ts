import { passTime } from '../support/virtual-time.js';
import { type Lease, LockLostError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { firstTurnAfterStandingStill, standStill } from '../support/time.js';
import { changing, failing, fault, held, outage, refusal, silent } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { patient, type Setting } from './setting.js';

const validity = (keyTimeout: number) => keyTimeout - Math.max(2, keyTimeout / 100);

/** Expects that the lease ends `validity` after some instant between `earliest` and `latest`. */
function expectEnd(lease: Lease, keyTimeout: number, earliest: number, latest: number): void {
  const end = performance.now() + lease.remaining();
  expect(lease.remaining()).toBeGreaterThan(0);
  expect(end).toBeLessThanOrEqual(latest + validity(keyTimeout));
  expect(end).toBeGreaterThanOrEqual(earliest + validity(keyTimeout));
}

export function validityContract({ open, newKey, takeAway }: Setting): void {
  let key: string;
  beforeEach(() => (key = newKey()));

  describe('G3 never claims an expired lease', () => {
    it('says so at once after the event loop stood still for longer than the lease', async () => {
      const lease = await open().acquire(key, { keyTimeout: 100 });
      standStill(150);
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(lease.signal.aborted).toBe(true);
    });

    it('aborts the signal on the first turn of the event loop after, whatever the store says', async () => {
      const { signal } = await open({ misbehaving: silent('renew') }).acquire(key, { keyTimeout: 100 });
      await firstTurnAfterStandingStill(150);
      expect(signal.aborted).toBe(true);
      expect(signal.reason).toBeInstanceOf(LockLostError);
      expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', key });
    });

    it('does not come back to life when the store still answers a renewal', async () => {
      const lease = await open().acquire(key, { keyTimeout: 100 });
      standStill(110);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      await passTime(50);
      expect(lease.remaining()).toBe(0);
      expect(await lease.release()).toBe(false);
    });

    it('does not come back to life by a renewal whose answer comes after the end', async () => {
      const { answer, misbehaving } = held('renew', 'requests');
      const lease = await open({ misbehaving }).acquire(key, { keyTimeout: 150 });
      const renewal = rejection(lease.renew());
      await eventually(() => lease.remaining() === 0);
      answer();
      expect(await renewal).toBeInstanceOf(LockLostError);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
    });

    it('does not come back to life by a later renewal whose answer is read after the end', async () => {
      const { answer, misbehaving } = held('renew');
      const lease = await open({ misbehaving }).acquire(key, { keyTimeout: 300 });
      // By then the watchdog has sent a renewal.
      await passTime(200);
      standStill(120);
      expect(lease.remaining()).toBe(0);
      answer();
      for (let i = 0; i < 20; i++) await Promise.resolve();
      expect(lease.remaining()).toBe(0);
      expect(lease.signal.aborted).toBe(true);
    });

    it('counts from the request that was granted, however long the wait was before', async () => {
      const holder = await open().acquire(key, patient);
      const waiting = open().acquire(key, { keyTimeout: 500, waitTimeout: Infinity, retryInterval: 10 });
      await passTime(600);
      const releasedAt = performance.now();
      await holder.release();
      // The granted request may have been on its way before the release was.
      expectEnd(await waiting, 500, releasedAt - 50, performance.now());
    });

    it.each([1_000, 60_000])('counts %d ms from before the request, less the larger of 2 ms and 1 %%', async (keyTimeout) => {
      let sentAt = 0;
      const slow = async (send: () => Promise<never>) => {
        sentAt = performance.now();
        const reply = await send();
        await passTime(50);
        return reply;
      };
      const locks = open({ misbehaving: (real) => ({ ...changing('acquire', slow)(real), ...changing('renew', slow)(real) }) });
      const calledAt = performance.now();
      const lease = await locks.acquire(key, { keyTimeout });
      expectEnd(lease, keyTimeout, calledAt, sentAt);
      const renewedAt = performance.now();
      await lease.renew();
      expectEnd(lease, keyTimeout, renewedAt, sentAt);
    });
  });

  describe('G4 renews until the real end', () => {
    it('through renewals that fail for a while, which it says are unknown', async () => {
      let fixed = 0;
      const mending = changing('renew', (send) => {
        fixed ||= performance.now() + 300;
        return performance.now() < fixed ? Promise.reject(outage()) : send();
      });
      const locks = open({ misbehaving: mending });
      const unknown: string[] = [];
      locks.on('unknown', ({ operation }) => unknown.push(operation));
      const lease = await locks.acquire(key, { keyTimeout: 1_000 });
      await passTime(1_100);
      lease.assertHeld();
      expect(lease.signal.aborted).toBe(false);
      expect(unknown).toContain('renew');
    });

    it.each([
      ['time out', outage],
      ['are refused', refusal],
      ['break the driver', fault],
    ])('and not less when all renewals %s', async (_how, failure) => {
      const locks = open({ misbehaving: failing('renew', Infinity, failure) });
      const { elapsed, result } = await timed(async () => {
        const { signal } = await locks.acquire(key, { keyTimeout: 300 });
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return signal;
      });
      expect(elapsed).toBeGreaterThanOrEqual(validity(300));
      expect(result.reason).toBeInstanceOf(LockLostError);
    });

    it('unless a reply says that the lease is lost: then the signal aborts long before the end', async () => {
      const locks = open();
      const lost: string[] = [];
      locks.on('lost', (event) => lost.push(event.key));
      const lease = await locks.acquire(key, patient);
      await takeAway(lease);
      const stranger = await open().acquire(key);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      expect(lease.signal.aborted).toBe(true);
      expect(lost).toEqual([key]);
      expect(await lease.release()).toBe(false);
      stranger.assertHeld();
      expect(await stranger.release()).toBe(true);
    });

    it('and finds by itself that the lease is lost', async () => {
      const lease = await open().acquire(key, { keyTimeout: 1_500 });
      const { elapsed } = await timed(async () => {
        await takeAway(lease);
        await eventually(() => lease.signal.aborted);
      });
      expect(elapsed).toBeLessThan(validity(1_500));
    });
  });
}
