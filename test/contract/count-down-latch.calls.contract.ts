import { passTime } from '../support/virtual-time.js';
import { getEventListeners } from 'node:events';
import type { CountDownLatch, LatchCallOptions, LatchChange } from 'nestjs-distributed-lock/core';
import { LockConfigError, LockLostError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { firstTurnAfterStandingStill } from '../support/time.js';
import { counting, deaf, failing, held, losing, refusal, silent } from './misbehaviour.js';
import { latchOpener, type LatchMisbehaviour } from './open-latches.js';
import type { MakeStore } from './open-locks.js';
import { rejection, timed } from '../support/rejection.js';

/** Each call, and the verb by which it asks. Where there is no latch, it ends with the answer of the store. */
const CALLS: [
  name: string,
  verb: 'trySetCount' | 'countDown' | 'look',
  call: (latch: CountDownLatch, options?: LatchCallOptions) => unknown,
][] = [
  ['trySetCount', 'trySetCount', (latch, options) => latch.trySetCount(3, options)],
  ['countDown', 'countDown', (latch, options) => latch.countDown(options)],
  ['getCount', 'look', (latch, options) => latch.getCount(options)],
  ['await', 'look', (latch, options) => latch.await(options)],
];

/** Each call, and each fault of the store. */
export function latchCallsContract(makeStore: MakeStore): void {
  describe.each(CALLS)('G9 %s', (name, verb, callOf) => {
    const { open, newKey } = latchOpener(makeStore);
    let key: string;
    let requests: ReturnType<typeof counting>;
    beforeEach(() => {
      key = newKey();
      requests = counting(verb);
    });
    const call = async (latch: CountDownLatch, options?: LatchCallOptions): Promise<unknown> => callOf(latch, options);

    /** A latch whose store does this, and counts the requests. */
    const latchWith = (misbehaving: LatchMisbehaviour, options: Parameters<typeof open>[0] = {}) =>
      open({ misbehaving: (real) => requests.misbehaving({ ...real, ...misbehaving(real) }), ...options }).countDownLatch(key);

    it('waits through an outage that ends in time', async () => {
      await call(latchWith(failing(verb, 4)), { waitTimeout: 20_000, retryInterval: 10 });
      expect(requests.asked).toBe(5);
    });

    it.each([0, 300])('ends by a wait timeout of %d ms and one requestTimeout in an outage', async (waitTimeout) => {
      const latch = latchWith(silent(verb, 200), { requestTimeout: 200 });
      const { result, elapsed } = await timed(() => rejection(call(latch, { waitTimeout })));
      expect(result).toBeInstanceOf(StoreError);
      expect(result).toMatchObject({ code: 'LOCK_STORE', key });
      expect(elapsed).toBeGreaterThanOrEqual(Math.max(waitTimeout, 200));
      expect(elapsed).toBeLessThanOrEqual(waitTimeout + 200);
    });

    it('has the wait timeout of its Locks where it has none of its own, and asks once with a retryCount of 1', async () => {
      const latch = latchWith(failing(verb), { defaults: { waitTimeout: 150, retryInterval: 10 } });
      const { result, elapsed } = await timed(() => rejection(call(latch)));
      expect(result).toBeInstanceOf(StoreError);
      expect(elapsed).toBeGreaterThanOrEqual(140);
      expect(elapsed).toBeLessThan(200);
      requests.asked = 0;
      await rejection(call(latch, { retryCount: 1 }));
      expect(requests.asked).toBe(1);
    });

    it('ends at once, whatever the wait timeout, when the store refuses', async () => {
      const latch = latchWith(failing(verb, Infinity, refusal));
      expect(await rejection(call(latch, { waitTimeout: Infinity }))).toMatchObject({ name: 'StoreError', transient: false, key });
      expect(requests.asked).toBe(1);
    });

    it.each([
      ['it waits for the next try', failing],
      ['a request is under way', silent],
    ])('ends at once when the signal aborts while %s, and asks nothing when it has', async (_when, fault) => {
      const latch = latchWith(fault(verb));
      const caller = new AbortController();
      const calling = rejection(call(latch, { waitTimeout: Infinity, retryInterval: 60_000, signal: caller.signal }));
      await passTime(50);
      caller.abort(new Error('The user went away.'));
      const { result, elapsed } = await timed(() => calling);
      expect(result).toMatchObject({ code: 'LOCK_ABORTED', reason: 'signal', cause: { message: 'The user went away.' }, key });
      expect(elapsed).toBe(0);
      expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
      requests.asked = 0;
      expect(await rejection(call(latch, { signal: caller.signal }))).toMatchObject({ code: 'LOCK_ABORTED' });
      expect(requests.asked).toBe(0);
    });

    it('is not sent again when a request that was under way when the signal aborted fails', async () => {
      const { answer, misbehaving } = held(verb, 'requests');
      const latch = latchWith((real) => misbehaving({ ...real, ...failing(verb)(real as never) } as never));
      const caller = new AbortController();
      const calling = rejection(call(latch, { waitTimeout: Infinity, retryInterval: 1, signal: caller.signal }));
      caller.abort();
      expect(await calling).toMatchObject({ code: 'LOCK_ABORTED' });
      answer();
      await passTime(50);
      expect(requests.asked).toBe(1);
    });

    it('is answered while the locks are being closed, which wait for it, and refused after that', async () => {
      const { sent, answer, misbehaving } = held(verb, 'requests');
      const locks = open({ misbehaving: misbehaving as never, shutdownTimeout: 20_000 });
      const latch = locks.countDownLatch(key);
      const calling = call(latch);
      await sent;
      const isClosed = jest.fn();
      const closing = name === 'await' ? locks.stopWaiting() : locks.close().then(isClosed);
      await passTime(50);
      expect(isClosed).not.toHaveBeenCalled();
      answer();
      await calling;
      await closing;
      await locks.close();
      expect(await rejection(call(latch))).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });
  });
}

export function latchCountingContract(makeStore: MakeStore): void {
  const { open, newKey } = latchOpener(makeStore);
  const patient = { waitTimeout: 20_000, retryInterval: 5 };
  let key: string;
  beforeEach(() => (key = newKey()));
  const latchOf = (options?: Parameters<typeof open>[0]) => open(options).countDownLatch(key);

  describe('a count', () => {
    it('is set where there is no latch or it is 0, and counted down to 0, for all who share the store', async () => {
      const [one, other] = [latchOf(), latchOf()];
      expect(await one.getCount()).toBe(0);
      expect(await one.trySetCount(2)).toBe(true);
      expect(await other.trySetCount(5)).toBe(false);
      expect(await other.getCount()).toBe(2);
      expect(await other.countDown()).toBe(1);
      expect(await one.trySetCount(5)).toBe(false);
      expect(await one.countDown()).toBe(0);
      expect(await one.countDown()).toBe(0);
      expect(await other.getCount()).toBe(0);
      expect(await other.trySetCount(1)).toBe(true);
      expect(await one.getCount()).toBe(1);
    });

    it('is counted down once by each of many callers, each of which sees another rest', async () => {
      const latches = [latchOf(), latchOf(), latchOf()];
      await latches[0]!.trySetCount(300);
      const rests = await Promise.all(Array.from({ length: 300 }, (_, index) => latches[index % 3]!.countDown()));
      expect(rests.sort((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, rest) => rest));
    });

    it('has a key of the namespace', async () => {
      const latch = open({ namespace: `${key}:` }).countDownLatch('latch');
      expect(latch.key).toBe(`${key}:latch`);
      await latch.trySetCount(3);
      expect(await open().countDownLatch(`${key}:latch`).getCount()).toBe(3);
    });
  });

  it.each([
    ['a count that is not whole', () => latchOf().trySetCount(1.5), '"?the count'],
    ['a count below 0', () => latchOf().trySetCount(-1), 'the count'],
    ['no count', () => latchOf().trySetCount(undefined as never), 'the count'],
    ['no key', async () => open().countDownLatch(''), 'key'],
  ])('refuses %s', async (_what, call, named) => {
    const error = await rejection(call());
    expect(error).toBeInstanceOf(LockConfigError);
    expect((error as Error).message).toMatch(new RegExp(named));
  });

  describe('G6 a change whose reply is lost is repeated, and made once', () => {
    /** The first so many replies of each verb are lost. */
    const losingBoth = (times: number, sent: LatchChange[] = []): LatchMisbehaviour => {
      const [set, count] = [losing('trySetCount', times), losing('countDown', times)];
      return (real) => {
        const verbs = { ...real, ...set(real as never), ...count(real as never) } as typeof real;
        return {
          trySetCount: (change) => (sent.push(change), verbs.trySetCount(change)),
          countDown: (change) => (sent.push(change), verbs.countDown(change)),
        };
      };
    };

    it.each([1, 3])('a count, with %d replies lost', async (times) => {
      await latchOf().trySetCount(5);
      const sent: LatchChange[] = [];
      expect(await latchOf({ misbehaving: losingBoth(times, sent) }).countDown(patient)).toBe(4);
      expect(sent).toHaveLength(times + 1);
      expect(await latchOf().getCount()).toBe(4);
    });

    it('a set, which answers true though the latch is there', async () => {
      const latch = latchOf({ misbehaving: losingBoth(2) });
      expect(await latch.trySetCount(3, patient)).toBe(true);
      expect(await latch.getCount()).toBe(3);
    });

    it('many at a time, of some of which it is the request that is lost, and one after the other', async () => {
      const [requests, replies] = [failing('countDown', 15), losing('countDown', 15)];
      const latch = latchOf({ misbehaving: (real) => requests({ ...real, ...replies(real as never) } as never) });
      await latchOf().trySetCount(100);
      await Promise.all(Array.from({ length: 40 }, () => latch.countDown(patient)));
      for (let done = 0; done < 10; done++) await latch.countDown(patient);
      expect(await latchOf().getCount()).toBe(50);
    });

    it('of which a copy comes late, when all is over', async () => {
      const sent: LatchChange[] = [];
      const locks = open({ misbehaving: losingBoth(1, sent) });
      const latch = locks.countDownLatch(key);
      await latch.trySetCount(2, patient);
      for (let done = 0; done < 3; done++) await latch.countDown(patient);
      await latch.trySetCount(7, patient);
      for (const change of sent.map((each) => ({ ...each }))) {
        if ('count' in change) await locks.store.countDownLatch!.trySetCount(change as LatchChange & { count: number });
        else await locks.store.countDownLatch!.countDown(change);
      }
      expect(await latchOf().getCount()).toBe(7);
    });

    it('and not by a repeat so late that the store may have forgotten it', async () => {
      const latch = open({ misbehaving: failing('countDown') as never }).countDownLatch(key, { timeToLive: 2_000 });
      const { result, elapsed } = await timed(() => rejection(latch.countDown({ waitTimeout: Infinity, retryInterval: 5 })));
      expect(result).toMatchObject({ name: 'StoreError' });
      expect(elapsed).toBeGreaterThanOrEqual(990);
      expect(elapsed).toBeLessThan(2_000);
    });

    it('and not after the process stood still for longer than the store remembers it', async () => {
      await latchOf().trySetCount(5);
      const sent: LatchChange[] = [];
      const counted = rejection(latchOf({ misbehaving: losingBoth(1, sent) }).countDown({ waitTimeout: 2_000, retryInterval: 1_000 }));
      await eventually(() => sent.length === 1);
      await firstTurnAfterStandingStill(6_500);
      expect(await counted).toMatchObject({ name: 'StoreError' });
      expect(sent).toHaveLength(1);
    });
  });

  it('is forgotten when its time to live is over, done or not', async () => {
    const latch = open().countDownLatch(key, { timeToLive: 150 });
    expect(await latch.trySetCount(5)).toBe(true);
    const { elapsed } = await timed(() => eventually(() => latch.trySetCount(1), { every: 5 }));
    expect(elapsed).toBeGreaterThan(100);
    await latch.countDown();
    await eventually(async () => (await open().store.countDownLatch!.look({ key, owner: '', queue: false })) === undefined);
  });
}

/** @param waitersOf names those who are noted at the store to wait for the latch. */
export function latchExpiryContract(makeStore: MakeStore, waitersOf: (key: string) => Promise<string[]> | string[]): void {
  const { open, newKey } = latchOpener(makeStore);
  const patient = { waitTimeout: Infinity, retryInterval: 60_000 };
  let key: string;
  beforeEach(() => (key = newKey()));
  const latchOf = (timeToLive = 60_000, misbehaving?: LatchMisbehaviour) => open({ misbehaving }).countDownLatch(key, { timeToLive });
  const noted = (count: number) => eventually(async () => (await waitersOf(key)).length === count);

  describe('a latch that expires before it is counted down', () => {
    it('is lost to its waiters as soon as it has', async () => {
      const latch = latchOf(600);
      await latch.trySetCount(2);
      const waiting = [rejection(latch.await(patient)), rejection(latchOf(600).await(patient))];
      await noted(2);
      await passTime(100);
      // The last count makes it live on.
      const { result: errors, elapsed } = await timed(() => latch.countDown().then(() => Promise.all(waiting)));
      for (const error of errors) {
        expect(error).toBeInstanceOf(LockLostError);
        expect(error).toMatchObject({ code: 'LOCK_LOST', key, message: expect.stringContaining('expired') });
      }
      expect(elapsed).toBeGreaterThanOrEqual(590);
      expect(elapsed).toBeLessThan(1_000);
    });

    it.each([3, 0])('is lost also to a waiter that finds another latch under its key, with a count of %d', async (count) => {
      // The look that would find it gone comes late: another one has been set by then.
      const late: LatchMisbehaviour = (real) => ({
        ...deaf(real),
        look: (look) => real.look(look).then((state) => state && { ...state, remaining: -1 }),
      });
      const latch = latchOf(300, late);
      await latch.trySetCount(2);
      const waiting = rejection(latch.await({ ...patient, retryInterval: 100 }));
      await noted(1);
      const next = latchOf();
      await eventually(() => next.trySetCount(count), { every: 5 });
      expect(await waiting).toBeInstanceOf(LockLostError);
    });
  });
}
