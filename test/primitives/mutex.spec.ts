import { type LeaseDriver, Locks, type LockStore, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { gate } from '../support/gate.js';
import { renewing } from '../contract/renewing.js';
import { throwing } from '../support/rejection.js';

const DAY = 86_400_000;
const LONGEST = Number.MAX_SAFE_INTEGER;

/** A store without a clock: what is granted stays until it is released. A real one would tick a million times in a month. */
function timelessStore(): LockStore {
  const holders = new Map<string, string>();
  const mutex: LeaseDriver = {
    queueEntryLifetime: Infinity,
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
  return { name: 'timeless', requestTimeout: 2_000, mutex, supports: (feature) => feature === 'mutex', close: async () => undefined };
}

const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);

/** Whether it has settled yet, and how. */
function watch(promise: Promise<unknown>) {
  const seen: { settled: boolean; outcome?: unknown } = { settled: false };
  const settle = (outcome: unknown) => Object.assign(seen, { settled: true, outcome });
  promise.then(settle, settle);
  return seen;
}

// A clock that passes over a month at once, and is faster for that than virtual time.
const opened: Locks[] = [];
beforeEach(() => void jest.useFakeTimers());
afterEach(async () => {
  const closed = Promise.all(opened.splice(0).map((locks) => locks.close()));
  // The watchdog serves the whole process: none of its timers must stay on the clock of this test.
  await jest.runOnlyPendingTimersAsync();
  await closed;
  await jest.runOnlyPendingTimersAsync();
  jest.useRealTimers();
});

function open(store = memoryStore()) {
  const locks = new Locks(store, { logger: false });
  opened.push(locks);
  return { locks, renew: jest.spyOn(store.mutex, 'renew'), acquire: jest.spyOn(store.mutex, 'acquire') };
}

/** What every store must do is in test/contract. */
describe('a mutex in the course of time', () => {
  it('is not renewed more often for its waiters', async () => {
    const { locks, renew } = open();
    const lease = await locks.acquire('key', { keyTimeout: 600_000 });
    const waiting = locks.acquire('key', { keyTimeout: 600_000, waitTimeout: Infinity, retryInterval: 1 });
    await pass(10_000);
    expect(renew).not.toHaveBeenCalled();
    await lease.release();
    await (await waiting).release();
  });

  it('is lost by nobody else when one Locks has a logger that throws', async () => {
    const fail = throwing(new Error('A fault of the logger.'));
    const noisy = new Locks(memoryStore(), { logger: { warn: fail, error: fail, debug: fail } });
    const lost = await noisy.acquire('key', { keyTimeout: 5_000, maxHold: 1 });
    const lease = await open().locks.acquire('key', { keyTimeout: 10_000 });
    await pass(60_000);
    expect(lost.remaining()).toBe(0);
    lease.assertHeld();
  });
});

describe('a mutex for longer than any timer', () => {
  it('is waited for as long as its waitTimeout, without asking all the time', async () => {
    const waitTimeout = 2 ** 31 + DAY;
    const { locks, acquire } = open(timelessStore());
    const lease = await locks.acquire('key', { keyTimeout: LONGEST });
    acquire.mockClear();
    const call = watch(locks.acquire('key', { waitTimeout, retryInterval: 2 ** 40 }));
    await pass(24 * DAY);
    expect(acquire.mock.calls.length).toBeLessThan(300);
    await pass(waitTimeout - 24 * DAY - 1_000);
    expect(call.settled).toBe(false);
    await pass(2_000);
    expect(call.outcome).toBeInstanceOf(LockTimeoutError);
    await lease.release();
  });

  it('is held for as long as its maxHold, and no longer', async () => {
    const maxHold = 2 ** 32;
    const lease = await open(timelessStore()).locks.acquire('key', { keyTimeout: LONGEST, maxHold });
    await pass(maxHold - 1_000);
    expect(lease.signal.aborted).toBe(false);
    await pass(2_000);
    expect(lease.signal.aborted).toBe(true);
    await lease.release();
  });

  it('is kept for as long as its minHold', async () => {
    const store = timelessStore();
    const release = jest.spyOn(store.mutex, 'release');
    await open(store).locks.using('key', () => pass(1_000), { keyTimeout: LONGEST, minHold: 2 ** 33 });
    expect(release).toHaveBeenCalledWith(expect.objectContaining({ keepFor: 2 ** 33 - 1_000 }));
  });

  it('is waited for by a close for as long as its shutdownTimeout', async () => {
    const patient = new Locks(timelessStore(), { shutdownTimeout: 2 ** 40 });
    const end = gate();
    const body = watch(patient.using('key', () => end.passed, { keyTimeout: LONGEST }));
    await pass(0);
    const closed = watch(patient.close());
    await pass(DAY);
    expect(closed.settled).toBe(false);
    end.open();
    await pass(10);
    expect([body.settled, closed.settled]).toEqual([true, true]);
  });
});

it('mutexes of different stores are different locks, also for a call chain that holds the same key', async () => {
  const [one, other] = [open().locks, open().locks];
  const owners = await one.using('key', (outer) => other.using('key', (inner) => [outer.owner, inner.owner]));
  expect(new Set(owners).size).toBe(2);
});
