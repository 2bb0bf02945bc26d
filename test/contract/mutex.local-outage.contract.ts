import { setTimeout as pause } from 'node:timers/promises';
import { StoreError } from 'nestjs-distributed-lock/core';
import { end } from './call-end.js';
import type { Kind } from './kinds.js';
import { oneByOne } from './one-by-one.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { gate } from './gate.js';
import { outage } from './store-failures.js';

/** For what a busy machine adds. */
const SLACK = 1_000;
const REQUEST_TIMEOUT = 200;

/** Those who wait for one key in one process, and a store that does not answer. */
export function localOutageContract(makeStore: MakeStore, kind: Kind): void {
  describe('G9 callers of one process who wait for one key', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    let key: string;

    beforeEach(() => (key = newKey()));

    const silent = () => pause(REQUEST_TIMEOUT).then(() => Promise.reject(outage()));

    it('each end by their own patience and one requestTimeout in an outage, with a StoreError of their own', async () => {
      const away = open({ requestTimeout: REQUEST_TIMEOUT, misbehaving: () => ({ acquire: silent }) });
      const patience = [1_500, 50, 600, 0, 100, 1_000, 300];
      const ends = await Promise.all(patience.map((waitTimeout) => end(() => away.acquire(key, { waitTimeout, retryInterval: 20 }))));
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
      const slow = open({ misbehaving: oneByOne(answer.passed, () => sent.open()) });
      const body = gate();
      const first = slow.using(key, () => body.passed, { waitTimeout: Infinity });
      await sent.passed;
      const impatient = end(() => slow.acquire(key, { waitTimeout: 50 }));
      await pause(150);
      answer.open();
      const { error, took } = await Promise.race([impatient, pause(2_000, { error: 'it waits for the body', took: Infinity })]);
      body.open();
      await first;
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', key });
      expect(took).toBeLessThan(150 + SLACK);
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
