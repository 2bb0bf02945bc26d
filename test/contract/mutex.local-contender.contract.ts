import { LockAbortedError, type AcquireRequest } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection, timed } from './rejection.js';
import { oneByOne } from './one-by-one.js';
import { outage, refusal } from './store-failures.js';
import { pause, SLACK } from '../support/time.js';

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

    it('end by their patience though the request on behalf of the first one is under way', async () => {
      const sent = gate();
      const answer = gate();
      const slow = open({ misbehaving: oneByOne(answer.passed, () => sent.open()) });
      const body = gate();
      const first = slow.using(key, () => body.passed, { waitTimeout: Infinity });
      await sent.passed;
      const impatient = timed(() => rejection(slow.acquire(key, { waitTimeout: 50 })));
      await pause(150);
      answer.open();
      const { result: error, elapsed: took } = await Promise.race([impatient, pause(2_000, { result: 'none', elapsed: Infinity })]);
      body.open();
      await first;
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', key });
      expect(took).toBeLessThan(200);
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
      const ends = await Promise.all(
        Array.from({ length: 20 }, () => timed(() => rejection(locks.acquire(key, { waitTimeout: Infinity })))),
      );
      for (const { result: error, elapsed: took } of ends) {
        expect(error).toMatchObject({ code: 'LOCK_STORE' });
        expect(took).toBeLessThan(SLACK);
      }
      await eventually(() => calls.length === 1);
    });
  });
}
