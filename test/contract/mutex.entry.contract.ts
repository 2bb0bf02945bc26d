import { type AcquireReply, LockAbortedError, LockLostError, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, type Misbehaviour } from './open-locks.js';
import { rejection } from './rejection.js';
import { outage, refusal } from './store-failures.js';
import { pause, standStill } from '../support/time.js';

/** Grants, but its replies come so late that a lease of `keyTimeout` has run out: as often as it says. */
function late(keyTimeout: number, times = Infinity): Misbehaviour {
  return (real) => ({
    async acquire(request) {
      const reply = await real.acquire(request);
      if (times-- > 0) await pause(keyTimeout + 50);
      return reply;
    },
  });
}

export function entryContract(makeStore: MakeStore, kind: Kind): void {
  describe('G1 no option, race or outage lets a body start without its lease', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    let key: string;
    const body = jest.fn(() => 'ran');

    beforeEach(() => {
      key = newKey();
      body.mockClear();
    });
    afterEach(() => expect(body).not.toHaveBeenCalled());

    const isFree = async () => {
      const lease = await open().tryAcquire(key);
      return lease !== null && (await lease.release());
    };

    it.each([
      { waitTimeout: 0 },
      { waitTimeout: 60 },
      { retryCount: 1 },
      { retryCount: 3, retryInterval: 20 },
      { waitTimeout: 60, fair: true },
    ])('not while another holds the key, with %j', async (options) => {
      await open().acquire(key);
      expect(await rejection(open().using(key, body, options))).toBeInstanceOf(LockTimeoutError);
    });

    it.each([{ waitTimeout: 0 }, { waitTimeout: 60 }, { waitTimeout: 60, fair: true }])(
      'not while the store is away, with %j',
      async (options) => {
        const locks = open({ misbehaving: () => ({ acquire: () => Promise.reject(outage()) }) });
        expect(await rejection(locks.using(key, body, { onTimeout: 'skip', ...options }))).toBeInstanceOf(StoreError);
      },
    );

    it('not when the store refuses or breaks, whatever the patience', async () => {
      for (const failure of [refusal(), new TypeError('A fault of the driver.')]) {
        const locks = open({ misbehaving: () => ({ acquire: () => Promise.reject(failure) }) });
        const error = await rejection(locks.using(key, body, { waitTimeout: Infinity, onTimeout: () => body() }));
        expect(error).toBeInstanceOf(StoreError);
      }
    }, 5_000);

    it('not on a grant that comes when its lease has run out; the key is given back', async () => {
      const locks = open({ misbehaving: late(100) });
      const options = { keyTimeout: 100, waitTimeout: 0 };
      // The store is slow: that is no contention.
      expect(await rejection(locks.using(key, body, options))).toBeInstanceOf(StoreError);
      await eventually(isFree);
    });

    it('not when the signal had been aborted', async () => {
      const error = await rejection(open().using(key, body, { signal: AbortSignal.abort('enough') }));
      expect(error).toBeInstanceOf(LockAbortedError);
      expect(error).toMatchObject({ reason: 'signal', cause: 'enough', key });
      expect(await isFree()).toBe(true);
    });

    it('not when the signal aborts while the request is under way, though it is granted; the key is given back', async () => {
      const sent = gate();
      const answer = gate();
      const locks = open({
        misbehaving: (real) => ({
          async acquire(request) {
            const reply = await real.acquire(request);
            sent.open();
            await answer.passed;
            return reply;
          },
        }),
      });
      const caller = new AbortController();
      const call = rejection(locks.using(key, body, { keyTimeout: 1_000, signal: caller.signal }));
      await sent.passed;
      caller.abort();
      expect(await call).toBeInstanceOf(LockAbortedError);
      expect(await isFree()).toBe(false);
      answer.open();
      // Long before its lease is over.
      await eventually(isFree);
    });

    it('not when the signal aborts with the grant in the same turn', async () => {
      const caller = new AbortController();
      const granted = (reply: AcquireReply) => {
        if (reply.granted) caller.abort();
        return reply;
      };
      const locks = open({ misbehaving: (real) => ({ acquire: (request) => real.acquire(request).then(granted) }) });
      expect(await rejection(locks.using(key, body, { signal: caller.signal }))).toBeInstanceOf(LockAbortedError);
      await eventually(isFree);
    });

    it('not when the event loop stood still after the grant until the lease had run out', async () => {
      const locks = open();
      locks.on('acquired', () => standStill(150));
      expect(await rejection(locks.using(key, body, { keyTimeout: 100 }))).toBeInstanceOf(LockLostError);
    });
  });

  describe('G1 a grant that came too late', () => {
    const { open, newKey } = locksOpener(makeStore, kind);

    it('is asked for again, and only the second one counts', async () => {
      const locks = open({ misbehaving: late(300, 1) });
      const attempts: number[] = [];
      locks.on('acquired', (event) => attempts.push(event.attempts));
      const remaining = await locks.using(newKey(), (lease) => lease.remaining(), { keyTimeout: 300, waitTimeout: 5_000 });
      expect(remaining).toBeGreaterThan(0);
      expect(attempts).toEqual([2]);
    });
  });
}
