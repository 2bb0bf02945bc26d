import { mayTake, passTime } from '../support/virtual-time.js';
import { LockAbortedError, type AcquireOptions, type LockStore, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { RequestDeadlines, type TimedRequest } from '../../lib/core/store/request-deadlines.js';
import { LinkedEntry } from '../../lib/core/util/linked-list.js';

mayTake(30_000);

const REQUEST_TIMEOUT = 1_000;
const PATIENCE = 5_000;
const PATIENT = { keyTimeout: 600_000, waitTimeout: Infinity, retryInterval: 5_000 };
const IMPATIENT = { ...PATIENT, waitTimeout: PATIENCE };
const KEYS = ['key 1', 'key 2', 'key 3', 'key 4'];

/** How long the store takes for each reply, milliseconds; Infinity: it never answers. */
interface Pace {
  delay: number;
  /** Ends of the replies that are yet to come. */
  readonly pending: Set<() => void>;
}

/** The memory store, which does at once what it is asked, and answers at its own pace. */
function slowStore(pace: Pace): LockStore {
  const store = memoryStore();
  const late = async (reply: unknown): Promise<unknown> => {
    const answer: unknown = await reply;
    const { delay, pending } = pace;
    if (delay > 0) {
      await new Promise<void>((resolve) => {
        pending.add(resolve);
        if (delay < Infinity) setTimeout(resolve, delay);
      });
    }
    return answer;
  };
  const slowed = <D extends object>(driver: D): D =>
    new Proxy(driver, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]): unknown => {
          const reply: unknown = member.apply(target, args);
          // Renewals have an answer each.
          return Array.isArray(reply) ? reply.map(late) : late(reply);
        };
      },
    });
  return { ...store, requestTimeout: REQUEST_TIMEOUT, mutex: slowed(store.mutex), countDownLatch: slowed(store.countDownLatch!) };
}

interface Outcome {
  after?: number;
  error?: unknown;
}

/** How the call ends, and after how long. */
function watch(call: Promise<unknown>): Outcome {
  const start = performance.now();
  const outcome: Outcome = {};
  const end = () => (outcome.after = Math.round(performance.now() - start));
  call.then(end, (error: unknown) => {
    end();
    outcome.error = error;
  });
  return outcome;
}

/** A call with patience T ends by T and one requestTimeout. */
describe('G9 whatever is under way', () => {
  let pace: Pace;
  let locks: Locks;
  let elsewhere: Locks;

  beforeEach(() => {
    pace = { delay: 0, pending: new Set() };
    const store = slowStore(pace);
    [locks, elsewhere] = [1, 2].map(() => new Locks(store, { logger: false, shutdownTimeout: 0 })) as [Locks, Locks];
  });
  afterEach(async () => {
    pace.delay = 0;
    for (const answer of pace.pending) answer();
    await Promise.all([locks.close(), elsewhere.close()]);
  });

  it('a caller behind others of its process ends by its wait timeout, also when the holder of its process has handed the key over to another one', async () => {
    const holder = await locks.acquire('key', PATIENT);
    void locks.acquire('key', PATIENT).catch(() => undefined);
    const impatient = watch(locks.acquire('key', { ...PATIENT, waitTimeout: 10_200 }));
    const stranger = elsewhere.acquire('key', PATIENT);
    await passTime(9_500);
    void holder.release();
    await passTime(1);
    (await stranger).assertHeld();
    await passTime(698);
    expect(impatient).toEqual({});
    await passTime(2);
    expect(impatient.error).toBeInstanceOf(LockTimeoutError);
  });

  it('the caller for which the key is asked for again, with its own times, gets it: the caller of the first request has gone', async () => {
    pace.delay = 400;
    const gone = new AbortController();
    const first = watch(locks.acquire('key', { ...PATIENT, signal: gone.signal }));
    const second = locks.acquire('key', { ...PATIENT, keyTimeout: 300_000, waitTimeout: 200 });
    await passTime(300);
    gone.abort();
    (await second).assertHeld();
    expect(first.error).toBeInstanceOf(LockAbortedError);
  });

  describe.each([900, Infinity])('a store that takes %d ms for each reply', (delay) => {
    const last = PATIENCE + REQUEST_TIMEOUT + 1;

    /** Three callers that wait, of which the first asks or looks for all, and how they end. */
    async function three(options: AcquireOptions = IMPATIENT): Promise<Outcome[]> {
      const calls = [1, 2, 3].map(() => watch(locks.acquire('key', options)));
      await passTime(0);
      return calls;
    }

    /** Lets the time pass in which they must end, of which some has passed. */
    async function expectEnds(calls: readonly Outcome[], passed: number): Promise<void> {
      await passTime(last - passed);
      for (const { after, error } of calls) {
        expect(after).toBeLessThanOrEqual(last);
        if (error) expect((error as Error).name).toMatch(/^(LockTimeout|Store)Error$/);
      }
    }

    it.each<[string, () => Locks, AcquireOptions]>([
      ['behind a holder of their process', () => locks, {}],
      ['behind a holder elsewhere', () => elsewhere, {}],
      ['in a fair queue', () => elsewhere, { fair: true }],
    ])('does not keep those who wait %s', async (_where, holder, options) => {
      const lease = await holder().acquire('key', PATIENT);
      const calls = await three({ ...IMPATIENT, ...options });
      pace.delay = delay;
      await expectEnds(calls, 0);
      lease.assertHeld();
    });

    it.each([-1_000, -100, 0, 100, 500])('nor when the holder releases %d ms from their end', async (time) => {
      const holder = await locks.acquire('key', PATIENT);
      void elsewhere.acquire('key', PATIENT).catch(() => undefined);
      const calls = await three();
      pace.delay = delay;
      await passTime(PATIENCE + time);
      void holder.release();
      await expectEnds(calls, PATIENCE + time);
    });

    it('nor those on whose behalf another one asks, whose wait is called off', async () => {
      const caller = new AbortController();
      await elsewhere.acquire('key', PATIENT);
      const first = watch(locks.acquire('key', { ...PATIENT, signal: caller.signal }));
      const calls = await three();
      pace.delay = delay;
      await passTime(PATIENCE - 500);
      caller.abort();
      await passTime(1);
      expect(first.error).toBeInstanceOf(LockAbortedError);
      await expectEnds(calls, PATIENCE - 499);
    });

    it.each([
      ['wait for several keys', 'key 2', 0, false],
      ['get one of several keys at the end', 'key 1', PATIENCE - 100, true],
    ])('nor callers that %s', async (_what, held, time, isReleased) => {
      const holder = await elsewhere.acquire(held, PATIENT);
      const calls = [1, 2].map(() => watch(locks.multiLock(KEYS).acquire(IMPATIENT)));
      await passTime(time);
      if (isReleased) void holder.release();
      pace.delay = delay;
      await expectEnds(calls, time);
    });

    it('nor the waiters of a latch', async () => {
      const latch = locks.countDownLatch('latch');
      await latch.trySetCount(1);
      const calls = [1, 2].map(() => watch(latch.await({ waitTimeout: PATIENCE, retryInterval: 5_000 })));
      await passTime(0);
      pace.delay = delay;
      await expectEnds(calls, 0);
    });
  });

  it('the error of callers whose last try got no answer is a StoreError, also if an older try was refused', async () => {
    await elsewhere.acquire('key', PATIENT);
    const calls = [watch(locks.acquire('key', IMPATIENT)), watch(locks.acquire('key', IMPATIENT))];
    await passTime(0);
    pace.delay = Infinity;
    await passTime(PATIENCE + REQUEST_TIMEOUT + 1);
    for (const { error } of calls) {
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true, key: 'key' });
    }
  });

  it('an aborted signal ends a wait for several keys at once, also while those that are held are released', async () => {
    const caller = new AbortController();
    await elsewhere.acquire('key 2', PATIENT);
    const call = watch(locks.multiLock(KEYS).acquire({ ...PATIENT, signal: caller.signal }));
    await passTime(1_000);
    pace.delay = Infinity;
    caller.abort();
    await passTime(1);
    expect(call.after).toBe(1_000);
    expect(call.error).toBeInstanceOf(LockAbortedError);
  });
});

it('the deadlines of requests are kept for each request, also if the end of one begins another (G9)', async () => {
  class Request extends LinkedEntry<Request> implements TimedRequest<Request> {
    endsAt = 0;
    constructor(readonly name: string) {
      super();
    }
  }
  const ends: [string, number][] = [];
  const start = performance.now();
  const deadlines: RequestDeadlines<Request> = new RequestDeadlines<Request>(300, (request) => {
    deadlines.end(request);
    ends.push([request.name, Math.round(performance.now() - start)]);
    if (request.name === 'first') deadlines.begin(new Request('probe'));
  });
  deadlines.begin(new Request('first'));
  await passTime(10);
  deadlines.begin(new Request('second'));
  await passTime(1_000);
  expect(ends.map(([name]) => name)).toEqual(['first', 'second', 'probe']);
  for (const [index, due] of [300, 310, 600].entries()) {
    const late = ends[index]![1] - due;
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(10);
  }
});
