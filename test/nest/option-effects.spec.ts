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
  const timeouts: LockEvents['timeout'][] = [];
  booted.locks.on('timeout', (event) => void timeouts.push(event));
  const remaining = async () => (await booted.store.mutex.check({ key: KEY, owner: 'nobody' })).remaining;
  /** Another takes the key away in the midst of a body. */
  const steal = () => booted.store.mutex.release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
  const occupy = () => booted.locks.acquire(KEY, { keyTimeout: LONG });
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

  it('is renewed for as long as the method runs', async () => {
    const { job, run, isTaken: taken } = await bootJob({ keyTimeout: 600 });
    const gate = new Gate();
    job.body = () => gate.pass();
    const call = run();
    const start = performance.now();
    await eventually(() => performance.now() - start > 1_500);
    expect(await taken(KEY)).toBe(true);
    gate.open();
    await call;
  });
});

describe('onLost', () => {
  it('ignore: the call does not wait for the reply to its release', async () => {
    const { run, store } = await bootJob({ onLost: 'ignore' });
    const gate = new Gate();
    const released = jest.spyOn(store.mutex, 'release').mockImplementation(async () => {
      await gate.pass();
      return 'released';
    });
    expect(await run()).toBe('done');
    expect(released).toHaveBeenCalledTimes(1);
    gate.open();
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
    job.body = () => fail('ran');
    const { error } = (await outcomeOf(run())) as { error: LockTimeoutError };
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error.key).toBe(KEY);
    expect(timeouts).toHaveLength(1);
    expect(timeouts[0]?.waited).toBeGreaterThanOrEqual(least);
    expect(timeouts[0]?.waited).toBeLessThan(3_000);
    expect(waiting).toHaveLength(least === 0 ? 0 : 1);
  });

  it.each<[string, DistributedLockOptions]>([
    ['retryCount: 0', { retryCount: 0, retryInterval: 1 }],
    ['waitTimeout: Infinity', { waitTimeout: Infinity, retryCount: 1, retryInterval: 1 }],
  ])('has no end with %s', async (_what, options) => {
    const { run, locks, occupy } = await bootJob(options);
    const lease = await occupy();
    const call = run();
    await expect(locks.acquire(KEY, { waitTimeout: 200 })).rejects.toBeInstanceOf(LockTimeoutError);
    await lease.release();
    expect(await call).toBe('done');
  });

  it('ends with the release, however long the retryInterval', async () => {
    const { run, occupy } = await bootJob({ retryCount: 0, retryInterval: 20_000 });
    const lease = await occupy();
    const call = run();
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

  it("hands out the result with 'ignore'", async () => {
    const { job, run, steal } = await bootJob({ keyTimeout: LONG, onLost: 'ignore' });
    job.body = async () => (await steal(), 'sold');
    expect(await run()).toBe('sold');
  });

  it('does not touch the error of a body whose lease was lost', async () => {
    const { job, run, steal } = await bootJob({ keyTimeout: LONG });
    const error = new Error('sold out');
    job.body = async () => {
      await steal();
      throw error;
    };
    expect(await outcomeOf(run())).toEqual({ error });
  });
});

describe('reentrant', () => {
  it.each([{}, { reentrant: true }])('lets the call chain take its own key again: %p', async (options) => {
    const { job, run, acquired } = await bootJob({ waitTimeout: 0, ...options });
    job.body = (again) => (again ? run(false) : 'deep');
    expect(await run(true)).toBe('deep');
    expect(acquired).toEqual([KEY]);
  });

  it('makes the call chain wait for itself like a stranger with false', async () => {
    const { job, run } = await bootJob({ waitTimeout: 0, reentrant: false });
    job.body = (again) => (again ? run(false) : 'deep');
    await expect(run(true)).rejects.toBeInstanceOf(LockTimeoutError);
  });
});

describe('fair', () => {
  it('serves in the order of the calls', async () => {
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
});

describe('minHold and maxHold', () => {
  it('keeps the key taken for minHold after a method that was quicker', async () => {
    const { run, isTaken: taken, remaining } = await bootJob({ minHold: LONG, waitTimeout: 0 });
    expect(await run()).toBe('done');
    expect(await taken(KEY)).toBe(true);
    expect(await remaining()).toBeGreaterThan(LONG / 2);
    await expect(run()).rejects.toBeInstanceOf(LockTimeoutError);
  });

  it('aborts the signal and lets the key go after maxHold, while the call stays pending', async () => {
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

  it('is no limit without maxHold', async () => {
    const { job, run } = await bootJob({ keyTimeout: 600 });
    const start = performance.now();
    job.body = async () => {
      const signal = currentLease()?.signal;
      await eventually(() => performance.now() - start > 1_500);
      return signal?.aborted;
    };
    expect(await run()).toBe(false);
  });
});

function fail(what: string): never {
  throw new Error(what);
}
