import { setTimeout as pause } from 'node:timers/promises';
import { StoreError } from 'nestjs-distributed-lock/core';
import { locksOpener, type MakeStore } from './open-locks.js';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import { outage, refusal } from './store-failures.js';

/** For what a busy machine adds. */
const SLACK = 1_000;
const REQUEST_TIMEOUT = 200;

interface End {
  error?: unknown;
  took: number;
}

async function end(call: Promise<unknown>): Promise<End> {
  const start = performance.now();
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, took: performance.now() - start };
}

/** Those who wait for one key in one process, and a store that does not answer. */
export function localOutageContract(makeStore: MakeStore): void {
  describe('G9 callers of one process who wait for one key', () => {
    const { open, newKey } = locksOpener(makeStore);
    let key: string;

    beforeEach(() => (key = newKey()));

    const silent = () => pause(REQUEST_TIMEOUT).then(() => Promise.reject(outage()));

    it('each end by their own patience and one requestTimeout in an outage, with a StoreError of their own', async () => {
      const away = open({ requestTimeout: REQUEST_TIMEOUT, misbehaving: () => ({ acquire: silent }) });
      const patience = [1_500, 50, 600, 0, 100, 1_000, 300];
      const ends = await Promise.all(patience.map((waitTimeout) => end(away.acquire(key, { waitTimeout, retryInterval: 20 }))));
      for (const [index, { error, took }] of ends.entries()) {
        expect(error).toBeInstanceOf(StoreError);
        expect(error).toMatchObject({ code: 'LOCK_STORE', key });
        expect(took).toBeGreaterThanOrEqual(patience[index]! - 2);
        expect(took).toBeLessThan(patience[index]! + REQUEST_TIMEOUT + SLACK);
      }
      expect(new Set(ends.map(({ error }) => error)).size).toBe(ends.length);
      // Whoever is impatient must not wait for whoever is not.
      expect(ends[1]!.took).toBeLessThan(ends[0]!.took - 500);
    });

    it('end by their patience though the request on behalf of the first one is under way', async () => {
      const sent = gate();
      const answer = gate();
      const slow = open({
        misbehaving: (real) => ({
          acquire(request) {
            sent.open();
            return answer.passed.then(() => real.acquire(request));
          },
        }),
      });
      const body = gate();
      const first = slow.using(key, () => body.passed, { waitTimeout: Infinity });
      await sent.passed;
      const impatient = end(slow.acquire(key, { waitTimeout: 50 }));
      await pause(150);
      answer.open();
      const { error, took } = await Promise.race([impatient, pause(2_000, { error: 'it waits for the body', took: Infinity })]);
      body.open();
      await first;
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', key });
      expect(took).toBeLessThan(150 + SLACK);
    });

    it('end by their patience behind a holder of their own when the store is away', async () => {
      let isAway = false;
      const locks = open({
        requestTimeout: REQUEST_TIMEOUT,
        misbehaving: (real) => ({ renew: (batch) => (isAway ? silent() : real.renew(batch)) }),
      });
      const holder = await locks.acquire(key, { keyTimeout: 60_000 });
      isAway = true;
      const patience = [500, 100, 300];
      const ends = await Promise.all(patience.map((waitTimeout) => end(locks.acquire(key, { waitTimeout, retryInterval: 20 }))));
      for (const [index, { error, took }] of ends.entries()) {
        expect((error as { code: string }).code).toMatch(/^LOCK_(STORE|TIMEOUT)$/);
        expect(took).toBeLessThan(patience[index]! + REQUEST_TIMEOUT + SLACK);
      }
      expect(ends[0]!.error).toBeInstanceOf(StoreError);
      await holder.release();
    });

    it('all get it when the outage ends in time, one after the other', async () => {
      let isAway = true;
      const locks = open({
        requestTimeout: REQUEST_TIMEOUT,
        misbehaving: (real) => ({ acquire: (request) => (isAway ? silent() : real.acquire(request)) }),
      });
      let inside = 0;
      let most = 0;
      const body = async () => {
        most = Math.max(most, ++inside);
        await pause(1);
        inside--;
      };
      const calls = Array.from({ length: 50 }, () => locks.using(key, body, { waitTimeout: 20_000, retryInterval: 20 }));
      await pause(300);
      isAway = false;
      await Promise.all(calls);
      expect(most).toBe(1);
    });

    it('are refused together when the store says that no retry helps', async () => {
      const calls: string[] = [];
      const locks = open({
        misbehaving: () => ({ acquire: ({ owner }) => (calls.push(owner), pause(50).then(() => Promise.reject(refusal()))) }),
      });
      const ends = await Promise.all(Array.from({ length: 20 }, () => end(locks.acquire(key, { waitTimeout: Infinity }))));
      for (const { error, took } of ends) {
        expect(error).toMatchObject({ code: 'LOCK_STORE' });
        expect(took).toBeLessThan(SLACK);
      }
      await eventually(() => calls.length === 1);
    });

    it('are not given a key that the store granted too late', async () => {
      let isFirst = true;
      const locks = open({
        misbehaving: (real) => ({
          async acquire(request) {
            const reply = await real.acquire(request);
            if (isFirst) await pause(300);
            isFirst = false;
            return reply;
          },
        }),
      });
      const calls = [1, 2, 3].map(() =>
        locks.using(key, (lease) => lease.remaining(), { keyTimeout: 250, waitTimeout: 10_000, retryInterval: 20 }),
      );
      for (const remaining of await Promise.all(calls)) expect(remaining).toBeGreaterThan(0);
    });
  });
}
