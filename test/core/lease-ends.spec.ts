import { mayTake, passTime } from '../support/virtual-time.js';
import os from 'node:os';
import { performance as machine } from 'node:perf_hooks';
import { currentLease, LockConfigError, LockLostError, Locks, type LockLogger, type LockStore } from 'nestjs-distributed-lock/core';
import type { HeldLease } from '../../lib/core/holding/held-lease.js';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { closedAfter } from '../support/closed-after.js';
import { eventually } from '../support/eventually.js';
import { standStill } from '../support/time.js';

mayTake(20_000);

type Renew = LockStore['mutex']['renew'];

/** @param renewBy another way to renew. */
function open(renewBy: (real: Renew) => Renew = (real) => real) {
  const { mutex, ...store } = memoryStore();
  const renew = renewBy(mutex.renew.bind(mutex));
  const renewals: number[] = [];
  mutex.renew = (batch) => (renewals.push(...batch.map(({ ttl }) => ttl)), renew(batch));
  const warnings: string[] = [];
  const lags: number[] = [];
  const logger: LockLogger = { warn: (message) => void warnings.push(message), error: (message) => void warnings.push(message) };
  const locks = closedAfter(new Locks({ ...store, mutex }, { logger }));
  locks.on('lag', ({ lag }) => lags.push(lag));
  const isTaken = async (key: string) => (await mutex.check({ key, owner: 'nobody' })).state === 'taken';
  return { locks, renewals, isTaken, warnings, lags };
}

it('a lease that is released while another one of the same call chain is being released ends with it, once (G6)', async () => {
  const { locks, isTaken, warnings } = open();
  await locks.using('key', async (outer) => {
    const inner = await locks.acquire('key');
    let isHeld: boolean | undefined;
    (outer as HeldLease).onRelease(() => {
      void inner.release();
      isHeld = outer.remaining() > 0 || inner.remaining() > 0;
    });
    expect(await outer.release()).toBe(true);
    expect([isHeld, await inner.release(), await isTaken('key')]).toEqual([false, true, false]);
  });
  expect(warnings).toEqual([]);
});

describe('a lease with renew: false', () => {
  const FIXED = { keyTimeout: 1000, renew: false };

  it('is not renewed: at its end the signal aborts, and the key is free', async () => {
    const { locks, renewals, isTaken } = open();
    const lease = await locks.acquire('key', FIXED);
    const { signal } = lease;
    await passTime(900);
    expect(lease.remaining()).toBeGreaterThan(0);
    expect(await isTaken('key')).toBe(true);
    await passTime(101);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toHaveProperty('message', 'The lease of "key" was lost: its 1000 ms are over. [LOCK_LOST]');
    expect(lease.remaining()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    expect([await isTaken('key'), await lease.release(), renewals]).toEqual([false, false, []]);
  });

  it('that enters a held key again ends alone, and says by which option', async () => {
    const { locks } = open();
    await locks.using('key', async () => {
      const lease = await locks.acquire('key', FIXED);
      await passTime(1001);
      expect(lease.signal.reason).toHaveProperty('message', '"key" was held for its keyTimeout, and is not renewed any more. [LOCK_LOST]');
      expect(currentLease()!.remaining()).toBeGreaterThan(0);
    });
  });

  it('is renewed by hand, until its maxHold is over', async () => {
    const { locks, renewals, isTaken } = open();
    const lease = await locks.acquire('key', { ...FIXED, maxHold: 1_500 });
    await passTime(700);
    await lease.renew();
    expect(lease.remaining()).toBe(990);
    await passTime(900);
    expect(await isTaken('key')).toBe(true);
    await expect(lease.renew()).rejects.toThrow('maxHold is over');
    await passTime(101);
    expect(await isTaken('key')).toBe(false);
    expect(renewals).toEqual([1000]);
  });

  it.each([true, false])('begins again for the next caller of the process, and ends, after one with renew: %p', async (renew) => {
    const { locks, isTaken } = open();
    const first = await locks.acquire('key', { ...FIXED, renew });
    const waiting = locks.acquire('key', { ...FIXED, waitTimeout: 5000 });
    await passTime(600);
    await first.release();
    const second = await waiting;
    expect(second.remaining()).toBe(990);
    expect(second.owner).not.toBe(first.owner);
    await passTime(1001);
    expect([second.signal.aborted, await isTaken('key')]).toEqual([true, false]);
  });
});

describe('a lease that is renewed for another length', () => {
  it('has it from now on', async () => {
    const { locks, renewals } = open();
    const lease = await locks.acquire('key', { keyTimeout: 900 });
    await lease.renew(9000);
    expect(lease.remaining()).toBe(8910);
    await passTime(6001);
    expect(renewals).toEqual([9000, 9000, 9000]);
    await lease.renew(900);
    expect(lease.remaining()).toBeGreaterThan(8000);
    renewals.length = 0;
    await passTime(9900);
    expect(renewals.length).toBeGreaterThanOrEqual(30);
    expect(new Set(renewals)).toEqual(new Set([900]));
    expect(lease.remaining()).toBeGreaterThan(0);
    await lease.release();
  });

  it('does not count the answer to an older renewal for the new length', async () => {
    const answers: (() => void)[] = [];
    const { locks } = open(
      (real) => (batch) =>
        real(batch).map((reply) => (batch[0]!.ttl === 900 ? new Promise((resolve) => answers.push(() => resolve(reply))) : reply)),
    );
    const lease = await locks.acquire('key', { keyTimeout: 900 });
    await eventually(() => answers.length === 1);
    await lease.renew(3000);
    const remaining = lease.remaining();
    answers[0]!();
    await passTime(0);
    expect(lease.remaining()).toBeLessThanOrEqual(remaining);
    await lease.release();
  });

  it.each([9, 0.5, -1, NaN, Infinity, '500', null])('is refused with %p', async (keyTimeout) => {
    const lease = await open().locks.acquire('key');
    await expect(lease.renew(keyTimeout as never)).rejects.toBeInstanceOf(LockConfigError);
    await lease.release();
  });
});

describe('an event loop that stands still', () => {
  it.each([
    ['under a body that goes on', true],
    ['under a body that blocks and returns', false],
  ])('is warned about with its length from a third of the lease on, %s', async (_what, goesOn) => {
    const { locks, warnings, lags } = open();
    const body = async () => {
      await passTime(50);
      standStill(420);
      if (goesOn) await eventually(() => lags.length > 0);
    };
    await locks.using('key', body, { keyTimeout: 1200 });
    expect(lags).toHaveLength(1);
    // It is measured from the last look, which was a fortieth of the lease before at most.
    expect(lags[0]).toBeGreaterThanOrEqual(420);
    expect(lags[0]).toBeLessThanOrEqual(420 + 1200 / 40 + 1);
    expect(warnings).toEqual([
      expect.stringMatching(/^The event loop stood still for \d+ ms, more than a third of the keyTimeout of 1200 ms of "key"/),
    ]);
  });

  it.each([
    ['the body goes on', true],
    ['the body only blocks and returns', false],
  ])('is named in the loss that it caused: %s', async (_what, goesOn) => {
    const { locks, warnings } = open();
    const body = async ({ signal }: { signal: AbortSignal }) => {
      standStill(250);
      if (goesOn) await eventually(() => signal.aborted);
    };
    const error: unknown = await locks.using('key', body, { keyTimeout: 200 }).catch((reason: unknown) => reason);
    const why = 'not renewed within 200 ms, because the event loop stood still for 25\\d ms';
    expect(error).toBeInstanceOf(LockLostError);
    const message = expect.stringMatching(`^The lease of "key" was lost: ${why}\\. \\[LOCK_LOST\\]$`) as string;
    expect((error as Error).cause).toMatchObject({ message });
    expect(warnings).toContainEqual(expect.stringMatching(`^Lost "key" after 25\\d ms: ${why} \\[NDL_LEASE_LOST\\]$`));
  });

  it('is not named in a loss by a store that does not answer', async () => {
    const { locks } = open(() => () => [new Promise(() => undefined)]);
    const call = locks.using('key', ({ signal }) => eventually(() => signal.aborted), { keyTimeout: 1_500 });
    await expect(call).rejects.toMatchObject({
      cause: { message: 'The lease of "key" was lost: not renewed within 1,500 ms. [LOCK_LOST]' },
    });
  });
});

it('close() names bare leases that nobody released, once, and no running body', async () => {
  const { locks, warnings } = open();
  await locks.acquire('a');
  await locks.acquire('b');
  await (await locks.acquire('c')).release();
  await locks.close();
  expect(warnings).toEqual([
    'Closed while leases were held that nobody had released: "a", "b". Use `await using`, or release() in a finally. [NDL_NOT_RELEASED]',
  ]);
});

it('close() keeps a key for its minHold, but nothing of its lease, nor a timer for it (G7)', async () => {
  const { locks, isTaken } = open();
  await locks.acquire('key', { minHold: 3_600_000 });
  await locks.close();
  expect(await isTaken('key')).toBe(true);
  expect(locks['engine'].queues.kept.size).toBe(0);
});

it('a nested minHold is asked of the store under a lease that is older than its keyTimeout, which a killed process ends there', async () => {
  const asked: unknown[] = [];
  const { locks } = open((real) => (batch) => (asked.push(...batch.map(({ ttl, outlives }) => ({ ttl, outlives }))), real(batch)));
  await locks.using(
    'key',
    async () => {
      await locks.using('key', () => undefined, { minHold: 3_000 });
      expect(asked).toEqual([]);
      await passTime(6_000);
      asked.length = 0;
      await locks.using('key', () => undefined, { minHold: 3_000 });
      expect(asked).toEqual([{ ttl: 5_000, outlives: true }]);
    },
    { keyTimeout: 5_000 },
  );
});

it.each([
  [{ maxHold: 2_000 }, /^Lost "key" after .*: its maxHold is over/],
  [{ renew: false }, /are over/],
])('a method that goes on after the end of its lease tells of no lag: %p', async (times, line) => {
  const { locks, warnings, lags } = open();
  await locks.using('key', () => passTime(5_000), { keyTimeout: 1_000, onLost: 'ignore', ...times });
  expect(warnings).toEqual([expect.stringMatching(line)]);
  expect(lags).toEqual([]);
});

it('the error of a lease whose maxHold is over says so', async () => {
  const { locks } = open();
  const lease = await locks.acquire('key', { keyTimeout: 1_000, maxHold: 2_000 });
  await passTime(3_000);
  expect(() => lease.assertHeld()).toThrow(/maxHold/);
  await expect(locks.using('other', () => passTime(2_900), { keyTimeout: 1_000, maxHold: 2_000 })).rejects.toThrow(/maxHold/);
});

describe('a suspend of the machine', () => {
  let ahead = 0;
  let interruptions = 0;
  /** Milliseconds by which both clocks have gone on at once. */
  let passed = 0;
  beforeAll(() => {
    const monotonic = machine.now.bind(machine);
    jest.spyOn(machine, 'now').mockImplementation(() => monotonic() + passed);
    const uptime = os.uptime.bind(os);
    jest.spyOn(os, 'uptime').mockImplementation(() => {
      const seconds = uptime() + (ahead + passed) / 1000;
      for (const start = machine.now(); interruptions > 0 && machine.now() < start + 10;);
      interruptions = Math.max(0, interruptions - 1);
      return seconds;
    });
  });
  afterAll(() => void jest.restoreAllMocks());

  /** The clock since boot goes on, and the wall clock with it, but not the monotonic one. */
  function suspend(milliseconds: number, wall = milliseconds): void {
    ahead += milliseconds;
    jest.setSystemTime(Date.now() + wall);
  }

  it('ends a lease before its holder looks at it, and before any timer', async () => {
    const { locks, warnings, lags } = open();
    const [one, other] = [await locks.acquire('one'), await locks.acquire('other')];
    suspend(3_600_000);
    expect(one.remaining()).toBe(0);
    const lost = 'The lease of "other" was lost: not renewed within 10,000 ms, because the machine was suspended for 60 min. [LOCK_LOST]';
    expect(() => other.assertHeld()).toThrow(lost);
    expect(await one.release()).toBe(false);
    expect(lags).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/^Lost "other" after 60 min/), expect.stringMatching(/^Lost "one" after 60 min/)]);
  });

  it('ends a lease also if it is the first one after a day without a lease', async () => {
    const { locks } = open();
    passed += 86_400_000;
    const lease = await locks.acquire('key');
    suspend(20_000);
    expect(() => lease.assertHeld()).toThrow(/because the machine was suspended for 20 s/);
  });

  it('aborts the signal soon, also where somebody sets the wall clock back at once', async () => {
    const { locks, lags } = open();
    const { signal } = await locks.acquire('key');
    suspend(20_000, 0);
    await passTime(250);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(lags).toEqual([]);
  });

  it.each([0, 3])('is a loss for a call whose method ends after it, if reading the clock is interrupted %d times', async (times) => {
    const { locks } = open();
    const call = locks.using('key', () => (suspend(20_000), (interruptions = times), 'done'));
    await expect(call).rejects.toMatchObject({ name: 'LockLostError', result: 'done' });
  });

  it('that is shorter than a lease makes it shorter, and it is renewed', async () => {
    const { locks, renewals } = open();
    const lease = await locks.acquire('key');
    suspend(4_000);
    const remaining = lease.remaining();
    expect(remaining).toBeLessThanOrEqual(5_900);
    expect(remaining).toBeGreaterThan(5_800);
    await passTime(250);
    expect(renewals).toHaveLength(1);
    expect(lease.remaining()).toBeGreaterThan(9_500);
  });

  it('counts for a renewal that is answered after it', async () => {
    let answer = (): void => undefined;
    const slow =
      (real: Renew): Renew =>
      (batch) =>
        real(batch).map((reply) => new Promise((resolve) => (answer = () => resolve(reply))));
    const { locks } = open(slow);
    const lease = await locks.acquire('key');
    void lease.renew().catch(() => undefined);
    suspend(20_000);
    answer();
    await new Promise(setImmediate);
    expect(lease.remaining()).toBe(0);
  });

  it('is none if a clock is set, or a test lets time pass by itself', async () => {
    const { locks } = open();
    const lease = await locks.acquire('key');
    suspend(0, 3_600_000);
    expect(lease.remaining()).toBeGreaterThan(9_000);
    suspend(30, -7_200_000);
    expect(lease.remaining()).toBeGreaterThan(9_000);
    suspend(-3_600_000, 0);
    await passTime(20_000);
    expect(lease.remaining()).toBeGreaterThan(5_000);
    // The clock since boot may have followed the one that was set.
    suspend(20_000);
    expect(lease.remaining()).toBe(0);
  });
});
