import { getEventListeners } from 'node:events';
import { type CountDownLatch, LockAbortedError, type LatchCallOptions, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import { latchOpener, type LatchMisbehaviour } from './open-latches.js';
import type { MakeStore } from './open-locks.js';
import { rejection, timed } from './rejection.js';
import { outage, refusal } from './store-failures.js';
import { pause, SLACK } from '../support/time.js';

/** Each call that the store answers whatever it finds, and the verb by which it asks. */
const CALLS: [verb: 'trySetCount' | 'countDown' | 'look', call: (latch: CountDownLatch, options?: LatchCallOptions) => Promise<unknown>][] =
  [
    ['trySetCount', (latch, options) => latch.trySetCount(3, options)],
    ['countDown', (latch, options) => latch.countDown(options)],
    ['look', (latch, options) => latch.getCount(options)],
  ];

export function latchCallsContract(makeStore: MakeStore): void {
  describe.each(CALLS)('G9 a call that asks the store for %s', (verb, call) => {
    const { open, newKey } = latchOpener(makeStore);
    let key: string;
    let asked: number;
    beforeEach(() => {
      key = newKey();
      asked = 0;
    });

    /** A latch whose store does this first. */
    const latchWith = (act: () => Promise<unknown> | undefined, options: Parameters<typeof open>[0] = {}) => {
      const misbehaving: LatchMisbehaviour = (real) => ({
        [verb]: async (request: never) => {
          asked++;
          await act();
          return real[verb](request);
        },
      });
      const locks = open({ misbehaving, ...options });
      return { locks, latch: locks.countDownLatch(key) };
    };
    const failing = () => Promise.reject(outage());

    it('waits through an outage that ends in time', async () => {
      let failures = 4;
      const { latch } = latchWith(() => (failures-- > 0 ? failing() : undefined));
      await call(latch, { waitTimeout: 20_000, retryInterval: 10 });
      expect(asked).toBe(5);
    });

    it.each([0, 300])('ends by a patience of %d ms and one requestTimeout in an outage', async (waitTimeout) => {
      const { latch } = latchWith(() => pause(200).then(failing), { requestTimeout: 200 });
      const { result, elapsed } = await timed(() => rejection(call(latch, { waitTimeout })));
      expect(result).toBeInstanceOf(StoreError);
      expect(result).toMatchObject({ code: 'LOCK_STORE', key });
      expect(elapsed).toBeGreaterThanOrEqual(Math.max(waitTimeout, 200) - 2);
      expect(elapsed).toBeLessThan(waitTimeout + 200 + SLACK);
    });

    it('has the patience of its Locks if it says nothing, and asks once with a retryCount of 1', async () => {
      const { latch } = latchWith(failing, { defaults: { waitTimeout: 150, retryInterval: 10 } });
      const { result, elapsed } = await timed(() => rejection(call(latch)));
      expect(result).toBeInstanceOf(StoreError);
      expect(elapsed).toBeGreaterThanOrEqual(148);
      expect(elapsed).toBeLessThan(150 + SLACK);
      asked = 0;
      await rejection(call(latch, { retryCount: 1 }));
      expect(asked).toBe(1);
    });

    it('ends at once, whatever the patience, when the store refuses', async () => {
      const { latch } = latchWith(() => Promise.reject(refusal()));
      expect(await rejection(call(latch, { waitTimeout: Infinity }))).toMatchObject({ name: 'StoreError', transient: false, key });
      expect(asked).toBe(1);
    });

    it('ends at once when the signal aborts, whether it waits or a request is under way, and asks nothing when it has', async () => {
      for (const act of [failing, () => new Promise(() => undefined)]) {
        const { latch } = latchWith(act);
        const caller = new AbortController();
        const calling = rejection(call(latch, { waitTimeout: Infinity, retryInterval: 60_000, signal: caller.signal }));
        await eventually(() => asked > 0);
        await pause(50);
        caller.abort(new Error('The user went away.'));
        const { result, elapsed } = await timed(() => calling);
        expect(result).toMatchObject({ code: 'LOCK_ABORTED', reason: 'signal', cause: { message: 'The user went away.' }, key });
        expect(elapsed).toBeLessThan(SLACK);
        expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
        asked = 0;
        expect(await rejection(call(latch, { signal: caller.signal }))).toBeInstanceOf(LockAbortedError);
        expect(asked).toBe(0);
      }
    });

    it('is not sent again when a request that was under way when the signal aborted fails', async () => {
      const failure = gate();
      const { latch } = latchWith(() => failure.passed.then(failing));
      const caller = new AbortController();
      const calling = rejection(call(latch, { waitTimeout: Infinity, retryInterval: 1, signal: caller.signal }));
      caller.abort();
      expect(await calling).toBeInstanceOf(LockAbortedError);
      failure.open();
      await pause(50);
      expect(asked).toBe(1);
    });

    it('is still answered then, and waited for by close()', async () => {
      const [sent, answer] = [gate(), gate()];
      const { locks, latch } = latchWith(
        () => {
          sent.open();
          return answer.passed;
        },
        { shutdownTimeout: 20_000 },
      );
      const calling = call(latch);
      await sent.passed;
      let isClosed = false;
      const closing = locks.close().then(() => (isClosed = true));
      await pause(50);
      expect(isClosed).toBe(false);
      answer.open();
      await calling;
      await closing;
      expect(await rejection(call(latch))).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });
  });
}
