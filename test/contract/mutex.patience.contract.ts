import { LockAbortedError, type LockError, LockTimeoutError, type Locks, QuorumError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, type Misbehaviour } from './open-locks.js';
import { rejection, timed } from './rejection.js';
import { renewing } from './renewing.js';
import { outage, refusal } from './store-failures.js';
import { pause, SLACK } from '../support/time.js';

/** A store that answers nothing, and says so after its requestTimeout. */
function silent(requestTimeout: number): Misbehaviour {
  return () => ({ acquire: () => pause(requestTimeout).then(() => Promise.reject(outage())) });
}

export function patienceContract(makeStore: MakeStore, kind: Kind): void {
  describe('G9 an acquire ends when its patience does', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    let key: string;
    let locks: Locks;
    const attempts: number[] = [];

    beforeEach(() => {
      key = newKey();
      locks = open();
      attempts.length = 0;
      locks.on('timeout', (event) => attempts.push(event.attempts));
    });

    const holdKey = () => open().acquire(key, { keyTimeout: 60_000 });

    it('patience is time and not tries', async () => {
      const { owner: holder } = await holdKey();
      const options = { waitTimeout: 400, retryCount: 2, retryInterval: 10 };
      const { result, elapsed } = await timed(() => rejection(locks.acquire(key, options)));
      expect(result).toBeInstanceOf(LockTimeoutError);
      expect(result).toMatchObject({ code: 'LOCK_TIMEOUT', key, holder });
      expect(elapsed).toBeGreaterThanOrEqual(400);
      expect(elapsed).toBeLessThan(400 + SLACK);
      expect(attempts[0]).toBeGreaterThan(2);
    });

    it('names whom it was kept by, for as long as a minHold lasts after the release', async () => {
      const holder = await locks.acquire(key, { keyTimeout: 60_000, minHold: 60_000 });
      await holder.release();
      const error = await rejection(open().acquire(key, { waitTimeout: 0 }));
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: holder.owner });
      expect((error as Error).message).toContain(`it is held by ${holder.owner}.`);
    });

    it('names nobody where the store does not say who it is', async () => {
      const silent = open({
        misbehaving: () => ({ acquire: () => Promise.resolve({ granted: false, remaining: -1, holder: null, ahead: 1 }) }),
      });
      const error = await rejection(silent.acquire(key, { waitTimeout: 0 }));
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: undefined });
      expect((error as Error).message).toMatch(/: it is taken\.$/);
    });

    it.each([{ retryCount: 1 }, { waitTimeout: 0 }, { waitTimeout: 0, retryCount: 0 }, { waitTimeout: 0, fair: true }])(
      'asks once with %j',
      async (options) => {
        await holdKey();
        expect(await rejection(locks.acquire(key, options))).toBeInstanceOf(LockTimeoutError);
        expect(attempts).toEqual([1]);
      },
    );

    it.each([{ retryCount: 0 }, { waitTimeout: Infinity }, { waitTimeout: Infinity, fair: true }, { waitTimeout: 2 ** 40 }])(
      'waits for as long as it takes with %j',
      async (options) => {
        const holder = await holdKey();
        const waiting = locks.acquire(key, { retryInterval: 10, ...options });
        await pause(200);
        expect(attempts).toEqual([]);
        await holder.release();
        const lease = await waiting;
        lease.assertHeld();
      },
    );

    it.each([0, 300])('ends by %d ms and one requestTimeout when the store never answers', async (waitTimeout) => {
      const away = open({ misbehaving: silent(200), requestTimeout: 200 });
      const { result, elapsed } = await timed(() => rejection(away.acquire(key, { waitTimeout })));
      expect(result).toBeInstanceOf(StoreError);
      expect(result).toMatchObject({ code: 'LOCK_STORE', key });
      expect(elapsed).toBeGreaterThanOrEqual(Math.max(waitTimeout, 200) - 2);
      expect(elapsed).toBeLessThan(waitTimeout + 200 + SLACK);
    });

    it('waits through an outage that ends in time', async () => {
      let failures = 3;
      const away = open({
        misbehaving: (real) => ({ acquire: (request) => (failures-- > 0 ? Promise.reject(outage()) : real.acquire(request)) }),
      });
      const lease = await away.acquire(key, { waitTimeout: 20_000, retryInterval: 10 });
      lease.assertHeld();
    });

    it('waits while too few servers of a quorum answer, and says so to each caller by an error of its own', async () => {
      let failures = 3;
      const quorum = () => Promise.reject(new QuorumError('Too few votes, on purpose.', { key, votes: ['granted', outage()] }));
      const away = open({ misbehaving: (real) => ({ acquire: (request) => (failures-- > 0 ? quorum() : real.acquire(request)) }) });
      const lease = await away.acquire(key, { waitTimeout: 20_000, retryInterval: 10 });
      await lease.release();
      failures = Infinity;
      const calls = [1, 2].map(() => rejection(away.acquire(key, { waitTimeout: 100, retryInterval: 10 })));
      const [first, second] = await Promise.all(calls);
      for (const error of [first, second]) {
        expect(error).toBeInstanceOf(QuorumError);
        expect(error).toMatchObject({ code: 'LOCK_QUORUM', key, transient: true, votes: ['granted', expect.any(StoreError)] });
      }
      expect(first).not.toBe(second);
      expect(attempts).toEqual([]);
    });

    it('tells contention from an outage by the last try', async () => {
      await holdKey();
      const start = performance.now();
      const change = start + 150;
      const mending = open({
        misbehaving: (real) => ({ acquire: (request) => (performance.now() < change ? Promise.reject(outage()) : real.acquire(request)) }),
      });
      const failing = open({
        misbehaving: (real) => ({ acquire: (request) => (performance.now() > change ? Promise.reject(outage()) : real.acquire(request)) }),
      });
      const options = { waitTimeout: 400, retryInterval: 10 };
      const [mended, failed] = await Promise.all([mending, failing].map((each) => rejection(each.acquire(key, options))));
      expect(mended).toBeInstanceOf(LockTimeoutError);
      expect(failed).toBeInstanceOf(StoreError);
    });

    it('ends at once, whatever the patience, when the store refuses', async () => {
      let asked = 0;
      const away = open({ misbehaving: () => ({ acquire: () => (asked++, Promise.reject(refusal())) }) });
      expect(await rejection(away.acquire(key, { waitTimeout: Infinity }))).toBeInstanceOf(StoreError);
      expect(asked).toBe(1);
    });

    it.each([false, true])('ends at once when the signal aborts between two tries (fair: %p)', async (fair) => {
      await holdKey();
      const caller = new AbortController();
      const waiting = rejection(locks.acquire(key, { waitTimeout: Infinity, retryInterval: 60_000, fair, signal: caller.signal }));
      await pause(300);
      caller.abort(new Error('The user went away.'));
      const { result, elapsed } = await timed(() => waiting);
      expect(result).toBeInstanceOf(LockAbortedError);
      expect(result).toMatchObject({ code: 'LOCK_ABORTED', reason: 'signal', cause: { message: 'The user went away.' }, key });
      expect(elapsed).toBeLessThan(SLACK);
    });

    it('ends at once when the signal aborts while a request is under way', async () => {
      const answer = gate();
      const away = open({ misbehaving: () => ({ acquire: () => answer.passed.then(() => Promise.reject(outage())) }) });
      const caller = new AbortController();
      const waiting = rejection(away.acquire(key, { signal: caller.signal }));
      caller.abort();
      const { result, elapsed } = await timed(() => waiting);
      expect(result).toBeInstanceOf(LockAbortedError);
      expect(elapsed).toBeLessThan(SLACK);
      answer.open();
    }, 5_000);
  });

  describe('G9 a release delays a result by at most one requestTimeout', () => {
    const { open, newKey } = locksOpener(makeStore, kind);

    it('and is repeated behind its back when it gets no answer', async () => {
      let releases = 0;
      const away = open({
        requestTimeout: 200,
        misbehaving: () => ({ release: () => (releases++, pause(200).then(() => Promise.reject(outage()))) }),
      });
      const { result, elapsed } = await timed(() => away.using(newKey(), () => 'done', { keyTimeout: 60_000 }));
      expect(result).toBe('done');
      expect(elapsed).toBeLessThan(200 + SLACK);
      await eventually(() => releases > 1);
    });

    it('and not at all when the lease was lost before', async () => {
      const away = open({
        requestTimeout: 50,
        misbehaving: () => ({ renew: renewing(async () => 'lost'), release: () => new Promise(() => undefined) }),
      });
      const lease = await away.acquire(newKey());
      await rejection(lease.renew());
      expect(await lease.release()).toBe(false);
    }, 5_000);
  });

  describe('what becomes of a call whose patience ends', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    const body = () => 'body';
    let key: string;
    let locks: Locks;

    beforeEach(async () => {
      key = newKey();
      locks = open();
      await open().acquire(key, { keyTimeout: 60_000 });
    });

    it('is nothing with skip, also by default', async () => {
      expect(await locks.using(key, body, { waitTimeout: 0, onTimeout: 'skip' })).toBeUndefined();
      const skipping = open({ defaults: { onTimeout: 'skip', waitTimeout: 0 } });
      expect(await skipping.using(key, body)).toBeUndefined();
    });

    it('is what a function makes of it, which is told the key and the error', async () => {
      const instead = jest.fn(async () => 'instead');
      expect(await locks.using(key, body, { waitTimeout: 0, onTimeout: instead })).toBe('instead');
      const error = expect.any(LockTimeoutError) as LockError;
      expect(instead).toHaveBeenCalledWith({ key, error, args: [], target: undefined, method: undefined });
    });

    it.each([null, undefined, 5])('is what it returns, also %p', async (value) => {
      expect(await locks.using(key, body, { waitTimeout: 0, onTimeout: () => value })).toBe(value);
    });

    it('is the function’s own error where that throws', async () => {
      const error = new Error('No stock.');
      const fail = () => {
        throw error;
      };
      for (const onTimeout of [fail, () => Promise.reject(error)]) {
        expect(await rejection(locks.using(key, body, { waitTimeout: 0, onTimeout }))).toBe(error);
      }
    });

    it('concerns only the lock of that call: a nested one that times out makes the outer one fail', async () => {
      const outer = locks.using(newKey(), () => locks.using(key, body, { waitTimeout: 0 }), { onTimeout: 'skip' });
      expect(await rejection(outer)).toMatchObject({ name: 'LockTimeoutError', key });
    });

    it('is null for a tryAcquire, which says nothing of outages and wrong options', async () => {
      expect(await locks.tryAcquire(key)).toBeNull();
      expect(await locks.mutex(key).tryAcquire({ keyTimeout: 500 })).toBeNull();
      const away = open({ misbehaving: () => ({ acquire: () => Promise.reject(outage()) }) });
      expect(await rejection(away.tryAcquire(key))).toBeInstanceOf(StoreError);
    });

    it('is never a timeout when it was an outage: neither skip nor a function hear of it', async () => {
      const away = open({ misbehaving: () => ({ acquire: () => Promise.reject(outage()) }) });
      for (const onTimeout of ['skip', () => 'instead'] as const) {
        expect(await rejection(away.using(key, body, { waitTimeout: 10, onTimeout }))).toBeInstanceOf(StoreError);
      }
    });
  });
}
