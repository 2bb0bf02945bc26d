// What the options do is tested with the locks themselves (test/contract); here, that the decorator passes each of them on.
import type { DistributedLockOptions, LockEvents, LockLostError } from 'nestjs-distributed-lock';
import { currentLease, DistributedLock, LockTimeoutError } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { Gate } from './gate.js';

const KEY = 'job-locks';
const LONG = 60_000;

/** An app with one method, locked by these options under {@link KEY}. */
async function bootJob(options: DistributedLockOptions) {
  class Job {
    body: (...args: unknown[]) => unknown = () => 'done';

    @DistributedLock({ value: 'job', ...options })
    async run(...args: unknown[]) {
      return this.body(...args);
    }
  }
  const booted = await boot({ providers: [Job] });
  const job = booted.get(Job);
  const { locks, store } = booted;
  const timeouts: LockEvents['timeout'][] = [];
  locks.on('timeout', (event) => void timeouts.push(event));
  const remaining = async () => (await store.mutex.check({ key: KEY, owner: 'nobody' })).remaining;
  /** Another takes the key away in the midst of a body. */
  const steal = () => store.mutex.release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
  const occupy = () => locks.acquire(KEY, { keyTimeout: LONG });
  return { ...booted, job, run: (...args: unknown[]) => job.run(...args), timeouts, remaining, steal, occupy };
}

const outcomeOf = (call: Promise<unknown>) =>
  call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );

describe('keyTimeout', () => {
  it('is the length of the lease at the store', async () => {
    const { job, run, remaining } = await bootJob({ keyTimeout: LONG });
    job.body = remaining;
    const left = await run();
    expect(left).toBeGreaterThan(LONG / 2);
    expect(left).toBeLessThanOrEqual(LONG);
  });

  it('is renewed for as long as the method runs, which no maxHold limits', async () => {
    const { job, run, store } = await bootJob({ keyTimeout: 300 });
    const renew = jest.spyOn(store.mutex, 'renew');
    job.body = async () => {
      const lease = currentLease();
      await eventually(() => renew.mock.calls.length > 3);
      lease?.assertHeld();
      return lease?.signal.aborted;
    };
    expect(await run()).toBe(false);
  });
});

describe('patience', () => {
  it.each<[string, DistributedLockOptions, number]>([
    ['one try with retryCount: 1', { retryCount: 1 }, 0],
    ['one try with waitTimeout: 0', { waitTimeout: 0 }, 0],
    ['as long as waitTimeout says', { waitTimeout: 60 }, 60],
    ['retryCount - 1 times at least retryInterval', { retryCount: 3, retryInterval: 30 }, 60],
    ['waitTimeout rather than retryCount and retryInterval', { waitTimeout: 60, retryCount: 1, retryInterval: 5 }, 60],
  ])('is %s', async (_what, options, least) => {
    const { job, run, timeouts, waiting, occupy } = await bootJob(options);
    await occupy();
    job.body = () => {
      throw new Error('ran');
    };
    const { error } = (await outcomeOf(run())) as { error: LockTimeoutError };
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error.key).toBe(KEY);
    expect(timeouts).toHaveLength(1);
    expect(timeouts[0]?.waited).toBeGreaterThanOrEqual(least);
    expect(waiting).toHaveLength(least === 0 ? 0 : 1);
  });

  it.each<[string, DistributedLockOptions]>([
    ['retryCount: 0', { retryCount: 0, retryInterval: 1 }],
    ['waitTimeout: Infinity', { waitTimeout: Infinity, retryCount: 1, retryInterval: 1 }],
    ['retryCount: 0, and ends with the release however long the retryInterval', { retryCount: 0, retryInterval: 20_000 }],
  ])('has no end with %s', async (_what, options) => {
    const { run, locks, occupy } = await bootJob(options);
    const lease = await occupy();
    const call = run();
    await expect(locks.acquire(KEY, { waitTimeout: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
    await lease.release();
    expect(await call).toBe('done');
  });
});

describe('onLost', () => {
  it.each<[string, DistributedLockOptions]>([
    ["by default 'throw'", {}],
    ["'throw'", { onLost: 'throw' }],
  ])('is %s: a result whose lease was lost comes in a LockLostError', async (_what, options) => {
    const { job, run, steal } = await bootJob({ keyTimeout: LONG, ...options });
    job.body = async () => (await steal(), 'sold');
    const { error } = (await outcomeOf(run())) as { error: LockLostError };
    expect(error).toMatchObject({ name: 'LockLostError', code: 'LOCK_LOST', key: KEY, result: 'sold' });
  });

  it("hands out the result with 'ignore', and does not wait for the reply to its release", async () => {
    const { job, run, steal, store } = await bootJob({ keyTimeout: LONG, onLost: 'ignore' });
    job.body = async () => (await steal(), 'sold');
    expect(await run()).toBe('sold');
    const gate = new Gate();
    jest.spyOn(store.mutex, 'release').mockImplementation(async () => {
      await gate.pass();
      return 'released';
    });
    job.body = () => 'done';
    expect(await run()).toBe('done');
    expect(gate.arrived).toBe(1);
    gate.open();
  });
});

describe('reentrant', () => {
  it('makes the call chain wait for itself like a stranger with false', async () => {
    const { job, run } = await bootJob({ waitTimeout: 0, reentrant: false });
    job.body = (again) => (again ? run(false) : 'deep');
    await expect(run(true)).rejects.toBeInstanceOf(LockTimeoutError);
  });
});

it('fair serves in the order of the calls', async () => {
  const { job, run, occupy } = await bootJob({ fair: true, retryCount: 0, retryInterval: 5 });
  const lease = await occupy();
  const served: unknown[] = [];
  job.body = (number) => served.push(number);
  const numbers = Array.from({ length: 8 }, (_, number) => number);
  const calls = numbers.map((number) => run(number));
  await lease.release();
  await Promise.all(calls);
  expect(served).toEqual(numbers);
});

it('minHold keeps the key taken after a method that was quicker', async () => {
  const { run, isTaken: taken, remaining } = await bootJob({ minHold: LONG, waitTimeout: 0 });
  expect(await run()).toBe('done');
  expect(await taken(KEY)).toBe(true);
  expect(await remaining()).toBeGreaterThan(LONG / 2);
  await expect(run()).rejects.toBeInstanceOf(LockTimeoutError);
});

it('maxHold aborts the signal and lets the key go, while the call stays pending', async () => {
  const { job, run, isTaken: taken } = await bootJob({ keyTimeout: 60, maxHold: 80 });
  const gate = new Gate();
  let signal: AbortSignal | undefined;
  job.body = async () => {
    signal = currentLease()?.signal;
    await gate.pass();
    return 'late';
  };
  let settled = false;
  const call = outcomeOf(run()).finally(() => (settled = true));
  await eventually(() => signal?.aborted === true);
  await eventually(async () => !(await taken(KEY)));
  expect(settled).toBe(false);
  gate.open();
  expect(await call).toMatchObject({ error: { name: 'LockLostError', result: 'late' } });
});
