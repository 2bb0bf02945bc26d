import { LockAbortedError, type LockStore, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

const REQUEST_TIMEOUT = 1_000;
const PATIENCE = 5_000;

/** How long the store takes for each reply, milliseconds; Infinity: it never answers. */
interface Pace {
  delay: number;
  /** Ends of the replies that are yet to come. */
  readonly pending: Set<() => void>;
}

/** The memory store, which does at once what it is asked, and answers at its own pace. */
function slowStore(pace: Pace): LockStore {
  const store = memoryStore();
  const slowed = <D extends object>(driver: D): D =>
    new Proxy(driver, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          const reply: unknown = await (member.apply(target, args) as Promise<unknown>);
          const { delay, pending } = pace;
          if (delay > 0) {
            await new Promise<void>((resolve) => {
              pending.add(resolve);
              if (delay < Infinity) setTimeout(resolve, delay);
            });
          }
          return reply;
        };
      },
    });
  return { ...store, requestTimeout: REQUEST_TIMEOUT, mutex: slowed(store.mutex), countDownLatch: slowed(store.countDownLatch!) };
}

/** G9: a call with patience T ends by T and one requestTimeout. On a clock that the test moves. */
describe('G9 whatever is under way', () => {
  let pace: Pace;
  let store: LockStore;
  let locks: Locks;
  let elsewhere: Locks;
  const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);
  const patient = { keyTimeout: 600_000, waitTimeout: Infinity, retryInterval: 5_000 };

  beforeEach(() => {
    jest.useFakeTimers();
    pace = { delay: 0, pending: new Set() };
    store = slowStore(pace);
    locks = new Locks(store, { logger: false, shutdownTimeout: 0 });
    elsewhere = new Locks(store, { logger: false, shutdownTimeout: 0 });
  });
  afterEach(async () => {
    pace.delay = 0;
    for (const answer of pace.pending) answer();
    const closed = Promise.all([locks.close(), elsewhere.close()]);
    // The watchdog serves the whole process: none of its timers must stay on the clock of this test.
    await pass(10 * REQUEST_TIMEOUT);
    await closed;
    await jest.runOnlyPendingTimersAsync();
    jest.useRealTimers();
  });

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

  it('a caller behind others of its process ends by its patience, also when the holder of its process has passed the key on to another one', async () => {
    const holder = await locks.acquire('key', patient);
    void locks.acquire('key', patient).catch(() => undefined);
    const impatient = watch(locks.acquire('key', { ...patient, waitTimeout: 10_200 }));
    const stranger = elsewhere.acquire('key', patient);
    await pass(9_500);
    void holder.release();
    await pass(1);
    (await stranger).assertHeld();
    await pass(698);
    expect(impatient).toEqual({});
    await pass(2);
    expect(impatient.error).toBeInstanceOf(LockTimeoutError);
  });

  describe.each([900, Infinity])('a store that takes %d ms for each reply', (delay) => {
    const last = PATIENCE + REQUEST_TIMEOUT + 1;
    const impatient = { ...patient, waitTimeout: PATIENCE };

    /** Three who wait, of whom the first is the one who asks or looks, and how they end. */
    async function three(options = impatient): Promise<Outcome[]> {
      const calls = [1, 2, 3].map(() => watch(locks.acquire('key', options)));
      await pass(0);
      return calls;
    }

    async function expectEnds(calls: readonly Outcome[], time = PATIENCE): Promise<void> {
      await pass(last - time);
      for (const { after, error } of calls) {
        expect(after).toBeDefined();
        expect(after).toBeLessThanOrEqual(last);
        if (error) expect((error as Error).name).toMatch(/^(LockTimeout|Store)Error$/);
      }
    }

    it('does not keep those who wait behind a holder of their process', async () => {
      await locks.acquire('key', patient);
      const calls = await three();
      pace.delay = delay;
      await pass(PATIENCE);
      await expectEnds(calls);
    });

    it.each([-1_000, -100, 0, 100, 500])('nor when that one releases %d ms from their end', async (time) => {
      const holder = await locks.acquire('key', patient);
      void elsewhere.acquire('key', patient).catch(() => undefined);
      const calls = await three();
      pace.delay = delay;
      await pass(PATIENCE + time);
      void holder.release();
      await expectEnds(calls, PATIENCE + time);
    });

    it('nor those who wait behind a holder elsewhere', async () => {
      await elsewhere.acquire('key', patient);
      const calls = await three();
      pace.delay = delay;
      await pass(PATIENCE);
      await expectEnds(calls);
    });

    it('nor those on whose behalf another one asks, whose wait is called off', async () => {
      const caller = new AbortController();
      await elsewhere.acquire('key', patient);
      const first = watch(locks.acquire('key', { ...patient, signal: caller.signal }));
      const calls = await three();
      pace.delay = delay;
      await pass(PATIENCE - 500);
      caller.abort();
      await pass(1);
      expect(first.error).toBeInstanceOf(LockAbortedError);
      await pass(499);
      await expectEnds(calls);
    });

    it('nor fair ones', async () => {
      await elsewhere.acquire('key', patient);
      const calls = await three({ ...impatient, fair: true } as typeof impatient);
      pace.delay = delay;
      await pass(PATIENCE);
      await expectEnds(calls);
    });

    it('nor those who want several keys', async () => {
      await elsewhere.acquire('key 2', patient);
      const keys = ['key 1', 'key 2', 'key 3', 'key 4'];
      const calls = [1, 2].map(() => watch(locks.multiLock(keys).acquire(impatient)));
      await pass(0);
      pace.delay = delay;
      await pass(PATIENCE);
      await expectEnds(calls);
    });

    it('nor those who get one of several keys at the end', async () => {
      const holder = await elsewhere.acquire('key 1', patient);
      const keys = ['key 1', 'key 2', 'key 3', 'key 4'];
      const call = watch(locks.multiLock(keys).acquire(impatient));
      await pass(PATIENCE - 100);
      void holder.release();
      pace.delay = delay;
      await pass(100);
      await expectEnds([call]);
    });

    it('nor those who wait for a latch', async () => {
      const latch = locks.countDownLatch('latch');
      await latch.trySetCount(1);
      const calls = [1, 2].map(() => watch(latch.await({ waitTimeout: PATIENCE, retryInterval: 5_000 })));
      await pass(0);
      pace.delay = delay;
      await pass(PATIENCE);
      await expectEnds(calls);
    });
  });

  it('the error of one whose last try got no answer is a StoreError, of one who was refused before that a LockTimeoutError', async () => {
    await elsewhere.acquire('key', patient);
    const options = { ...patient, waitTimeout: PATIENCE };
    const [first, second] = [watch(locks.acquire('key', options)), watch(locks.acquire('key', options))];
    await pass(0);
    pace.delay = Infinity;
    await pass(PATIENCE + REQUEST_TIMEOUT + 1);
    expect(first.error).toBeInstanceOf(StoreError);
    expect(first.error).toMatchObject({ transient: true, key: 'key' });
    expect(second.error).toBeInstanceOf(LockTimeoutError);
  });

  it('an aborted signal ends a wait for several keys at once, also while those that are held are given back', async () => {
    const caller = new AbortController();
    await elsewhere.acquire('key 2', patient);
    const call = watch(locks.multiLock(['key 1', 'key 2']).acquire({ ...patient, signal: caller.signal }));
    await pass(1_000);
    pace.delay = Infinity;
    caller.abort();
    await pass(1);
    expect(call.after).toBe(1_000);
    expect(call.error).toBeInstanceOf(LockAbortedError);
  });
});
