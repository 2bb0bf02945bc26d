import { setTimeout as pause } from 'node:timers/promises';
import { LockAbortedError, type AcquireRequest, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { end } from './call-end.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewalBy, renewing } from './renewing.js';
import { outage, refusal } from './store-failures.js';

/** For what a busy machine adds. */
const SLACK = 1_000;
const REQUEST_TIMEOUT = 200;
const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** Callers of one process of whom only one at a time asks the store, on behalf of all. */
export function localContenderContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey } = locksOpener(makeStore, kind);
  let key: string;

  beforeEach(() => (key = newKey()));

  describe('G7 after a release or a give-up nothing stays behind', () => {
    it('at the store, of a lease that was to pass on by a request, when all who wait give up', async () => {
      const away = open({
        misbehaving: (real) => ({ acquire: (request) => (request.yields ? Promise.reject(outage()) : real.acquire(request)) }),
      });
      const key = newKey();
      const caller = new AbortController();
      const holder = await away.acquire(key, { keyTimeout: 60_000 });
      const next = rejection(away.acquire(key, { keyTimeout: 30_000, waitTimeout: Infinity, signal: caller.signal }));
      await holder.release();
      caller.abort();
      expect(await next).toBeInstanceOf(LockAbortedError);
      await eventually(async () => (await open().tryAcquire(key))!.release());
    });
  });

  describe('callers of one process who wait for one key', () => {
    it('pass on the place in the queue when the first of them gives up', async () => {
      const holder = await open().acquire(key, patient);
      const caller = new AbortController();
      const order: string[] = [];
      const places = new Set<string>();
      const recorded = () =>
        open({
          misbehaving: (real) => ({
            acquire: (request) => real.acquire(request).finally(() => request.queue && places.add(request.owner)),
          }),
        });
      const process = recorded();
      const first = rejection(process.acquire(key, { ...patient, signal: caller.signal }));
      const second = process.using(key, () => order.push('second'), patient);
      await eventually(() => places.size === 1);
      const stranger = recorded().using(key, () => order.push('stranger'), patient);
      await eventually(() => places.size === 2);
      caller.abort();
      expect(await first).toBeInstanceOf(LockAbortedError);
      await holder.release();
      await Promise.all([second, stranger]);
      expect(order).toEqual(['second', 'stranger']);
    });

    it('look by the retryInterval of the one who is first now, not of one who gave up', async () => {
      const holder = await open().acquire(key, patient);
      const caller = new AbortController();
      let places = 0;
      const deaf = open({
        misbehaving: (real) => ({
          acquire: (request) => real.acquire(request).finally(() => (places += Number(request.queue))),
          wakeUps: { isOpen: true, open: () => Promise.resolve(), listen: () => () => undefined },
        }),
      });
      const first = rejection(deaf.acquire(key, { ...patient, signal: caller.signal }));
      const second = deaf.acquire(key, { ...patient, retryInterval: 200 });
      await eventually(() => places === 1);
      caller.abort();
      await first;
      await eventually(() => places === 2);
      const start = performance.now();
      await holder.release();
      await (await second).release();
      expect(performance.now() - start).toBeLessThan(2 * 200 + SLACK);
    });

    it.each([
      ['minHold', { minHold: 400 }],
      ['keyTimeout', { keyTimeout: 20_000 }],
    ])('get their own %s also when the one who asked for them gave up meanwhile', async (_name, own) => {
      const answer = gate();
      const requests: AcquireRequest[] = [];
      const slow = open({
        misbehaving: (real) => ({
          async acquire(request) {
            requests.push(request);
            const reply = await real.acquire(request);
            await answer.passed;
            return reply;
          },
        }),
      });
      const caller = new AbortController();
      const first = rejection(slow.acquire(key, { ...patient, keyTimeout: 3_000, signal: caller.signal }));
      const second = slow.acquire(key, { ...patient, keyTimeout: 3_000, ...own });
      await eventually(() => requests.length === 1);
      caller.abort();
      await first;
      answer.open();
      const lease = await second;
      const start = performance.now();
      if ('keyTimeout' in own) {
        expect(lease.remaining()).toBeGreaterThan(own.keyTimeout / 2);
        expect(requests.at(-1)!.ttl).toBe(own.keyTimeout);
      }
      await lease.release();
      const other = await open().acquire(key, { ...patient, waitTimeout: 20_000 });
      if ('minHold' in own) expect(performance.now() - start).toBeGreaterThanOrEqual(own.minHold - 100);
      await other.release();
    });
  });

  describe('G9 callers of one process who wait for one key', () => {
    const silent = () => pause(REQUEST_TIMEOUT).then(() => Promise.reject(outage()));

    it('end by their patience behind a holder of their own when the store is away', async () => {
      let isAway = false;
      const locks = open({
        requestTimeout: REQUEST_TIMEOUT,
        misbehaving: (real) => ({ renew: renewing((request) => (isAway ? silent() : renewalBy(real, request))) }),
      });
      const holder = await locks.acquire(key, { keyTimeout: 60_000 });
      isAway = true;
      const patience = [500, 100, 300];
      const ends = await Promise.all(patience.map((waitTimeout) => end(() => locks.acquire(key, { waitTimeout, retryInterval: 20 }))));
      for (const [index, { error, took }] of ends.entries()) {
        expect((error as { code: string }).code).toMatch(/^LOCK_(STORE|TIMEOUT)$/);
        expect(took).toBeLessThan(patience[index]! + REQUEST_TIMEOUT + SLACK);
      }
      expect(ends[0]!.error).toBeInstanceOf(StoreError);
      await holder.release();
    });

    it('are refused together when the store says that no retry helps', async () => {
      const calls: string[] = [];
      const locks = open({
        misbehaving: () => ({ acquire: ({ owner }) => (calls.push(owner), pause(50).then(() => Promise.reject(refusal()))) }),
      });
      const ends = await Promise.all(Array.from({ length: 20 }, () => end(() => locks.acquire(key, { waitTimeout: Infinity }))));
      for (const { error, took } of ends) {
        expect(error).toMatchObject({ code: 'LOCK_STORE' });
        expect(took).toBeLessThan(SLACK);
      }
      await eventually(() => calls.length === 1);
    });
  });
}
