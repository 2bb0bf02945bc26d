import { type LeaseDriver, Locks, type LockStore, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { renewing } from '../contract/renewing.js';

const DAY = 86_400_000;

/** A store without a clock: what is granted stays until it is released. A real one would tick a million times in a month. */
function timelessStore(): LockStore {
  const holders = new Map<string, string>();
  const mutex: LeaseDriver = {
    placeLifetime: Infinity,
    async acquire({ key, owner }) {
      const holder = holders.get(key);
      if (holder !== undefined) return { granted: false, remaining: -1, holder, ahead: 0 };
      holders.set(key, owner);
      return { granted: true, token: 1 };
    },
    renew: renewing(async () => 'renewed'),
    release: async ({ key }) => (holders.delete(key) ? 'released' : 'lost'),
    leave: async () => undefined,
    check: async () => ({ state: 'free', remaining: 0, holder: null, token: null }),
  };
  return { name: 'timeless', requestTimeout: 1_000, mutex, supports: (feature) => feature === 'mutex', close: async () => undefined };
}

/** What every store must do is in test/contract; here is what needs a clock that the test moves. */
describe('a mutex in the course of time', () => {
  let store: LockStore;
  let locks: Locks;
  const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);

  beforeEach(() => {
    jest.useFakeTimers();
    store = memoryStore();
    locks = new Locks(store, { logger: false });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    const closed = locks.close();
    // The watchdog serves the whole process: none of its timers must stay on the clock of this test.
    await jest.runOnlyPendingTimersAsync();
    await closed;
    await jest.runOnlyPendingTimersAsync();
    jest.useRealTimers();
  });

  /** Whether it has settled yet, and how. */
  function watch(promise: Promise<unknown>) {
    const seen: { settled: boolean; outcome?: unknown } = { settled: false };
    const settle = (outcome: unknown) => Object.assign(seen, { settled: true, outcome });
    promise.then(settle, settle);
    return seen;
  }

  it('is held for as long as its holder wants, by one renewal for each third of the lease', async () => {
    const renew = jest.spyOn(store.mutex, 'renew');
    const lease = await locks.acquire('key', { keyTimeout: 30_000 });
    await pass(3_600_000);
    lease.assertHeld();
    expect(renew.mock.calls.length).toBeGreaterThanOrEqual(300);
    expect(renew.mock.calls.length).toBeLessThanOrEqual(361);
  });

  it.each([1, 10, 5_000])(
    'is looked after ten times a second at most by those who wait behind it, by a retryInterval of %d ms',
    async (retryInterval) => {
      const renew = jest.spyOn(store.mutex, 'renew');
      const lease = await locks.acquire('key', { keyTimeout: 600_000 });
      const waiting = locks.acquire('key', { keyTimeout: 600_000, waitTimeout: Infinity, retryInterval });
      await pass(10_000);
      expect(renew.mock.calls.length).toBeGreaterThanOrEqual(1);
      expect(renew.mock.calls.length).toBeLessThanOrEqual(100);
      await lease.release();
      await pass(0);
      await (await waiting).release();
    },
  );

  it.each([50, 100, 1_250])('is not asked for more often than that with a keyTimeout of %d ms', async (keyTimeout) => {
    const renew = jest.spyOn(store.mutex, 'renew');
    const lease = await locks.acquire('key', { keyTimeout });
    await pass(1_000);
    lease.assertHeld();
    expect(renew.mock.calls.length).toBeLessThanOrEqual(100);
  });

  it('is lost by nobody else when one Locks has a logger that throws', async () => {
    const fail = () => {
      throw new Error('A fault of the logger.');
    };
    const noisy = new Locks(memoryStore(), { logger: { warn: fail, error: fail, debug: fail } });
    const lost = await noisy.acquire('key', { keyTimeout: 300, maxHold: 1 });
    const lease = await locks.acquire('key', { keyTimeout: 900 });
    await pass(10_000);
    expect(lost.remaining()).toBe(0);
    lease.assertHeld();
  });

  describe('longer than any timer', () => {
    beforeEach(() => {
      store = timelessStore();
      locks = new Locks(store, { logger: false });
    });

    it.each([2 ** 31, 2 ** 33])('is waited for as long as %d ms, without asking all the time', async (waitTimeout) => {
      const keyTimeout = Number.MAX_SAFE_INTEGER;
      await locks.acquire('key', { keyTimeout });
      const ask = jest.spyOn(store.mutex, 'acquire');
      const call = watch(locks.acquire('key', { waitTimeout, retryInterval: 2 ** 40 }));
      await pass(24 * DAY);
      expect(call.settled).toBe(false);
      expect(ask.mock.calls.length).toBeLessThan(300);
      await pass(waitTimeout - 24 * DAY - 1_000);
      expect(call.settled).toBe(false);
      await pass(2_000);
      expect(call.outcome).toBeInstanceOf(LockTimeoutError);
    });

    it('is held as long as a maxHold that is longer than any timer, and no longer', async () => {
      const maxHold = 2 ** 32;
      const lease = await locks.acquire('key', { keyTimeout: Number.MAX_SAFE_INTEGER, maxHold });
      await pass(maxHold - 1_000);
      expect(lease.signal.aborted).toBe(false);
      expect(jest.getTimerCount()).toBeLessThanOrEqual(2);
      await pass(2_000);
      expect(lease.signal.aborted).toBe(true);
    });

    it('is kept as long as a minHold that is longer than any timer', async () => {
      const release = jest.spyOn(store.mutex, 'release');
      await locks.using('key', () => pass(1_000), { keyTimeout: Number.MAX_SAFE_INTEGER, minHold: 2 ** 33 });
      expect(release).toHaveBeenCalledWith(expect.objectContaining({ keepFor: 2 ** 33 - 1_000 }));
    });

    it('is waited for by a close with a shutdownTimeout that is longer than any timer', async () => {
      const patient = new Locks(store, { shutdownTimeout: 2 ** 40 });
      let end!: () => void;
      const body = watch(
        patient.using('key', () => new Promise<void>((resolve) => (end = resolve)), { keyTimeout: Number.MAX_SAFE_INTEGER }),
      );
      await pass(0);
      const closed = watch(patient.close());
      await pass(DAY);
      expect(closed.settled).toBe(false);
      end();
      await pass(10);
      expect([body.settled, closed.settled]).toEqual([true, true]);
    });
  });
});

describe('mutexes of different stores', () => {
  it('are different locks, also for a call chain that holds the same key', async () => {
    const [one, other] = [new Locks(memoryStore()), new Locks(memoryStore())];
    const owners = await one.using('key', (outer) => other.using('key', (inner) => [outer.owner, inner.owner]));
    expect(new Set(owners).size).toBe(2);
  });
});
