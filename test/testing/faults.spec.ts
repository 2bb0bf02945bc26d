// What code under test sees of each fault, whatever it returns.
import { mayTake, passTime } from '../support/virtual-time.js';
import { LockAbortedError, LockLostError, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { faultyStore, type LockFaults } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { open, Shop, valuesOf, type Returns } from './shop.js';

expect.extend(lockMatchers);
mayTake(Infinity);

const kinds: Returns[] = ['promise', 'observable', 'iterable'];

describe.each(kinds)('a call that returns a %s', (returns) => {
  const key = `${returns}-locks`;
  async function setting() {
    const opened = await open();
    const shop = opened.app.get(Shop);
    const call = async (): Promise<{ values?: string[]; error?: Error }> =>
      valuesOf(shop, returns).then(
        (values) => ({ values }),
        (error: Error) => ({ error }),
      );
    return { ...opened, faults: opened.locks.faults, shop, call };
  }

  const during = (fault: (faults: LockFaults) => unknown) => (faults: LockFaults) => void setTimeout(() => fault(faults), 1_000);
  it.each<[string, (faults: LockFaults) => unknown, outcome: string]>([
    ['no fault', () => undefined, 'sold'],
    ['an outage that is longer than the patience', (faults) => faults.outage(60_000), 'StoreError'],
    ['an outage that is shorter than the patience', (faults) => faults.outage(500), 'sold'],
    ['an outage until a promise is fulfilled', (faults) => faults.outage(passTime(500)), 'sold'],
    ['an outage until clear()', (faults) => (faults.outage(), void setTimeout(() => faults.clear(), 500)), 'sold'],
    ['an outage of 5 s while the body runs', during((faults) => faults.outage(5_000)), 'sold'],
    ['an outage of 30 s while the body runs', during((faults) => faults.outage(30_000)), 'LockLostError'],
    ['a refused acquire', (faults) => faults.refuse('acquire'), 'StoreError'],
    ['a lost reply to an acquire', (faults) => faults.dropReply('acquire'), 'sold'],
    ['a lost reply to the second renewal', (faults) => faults.dropReply('renew', 2), 'sold'],
    ['a lost reply to a release', (faults) => faults.dropReply('release'), 'sold'],
    ['replies that are slower than the requestTimeout', (faults) => faults.slow(60_000), 'StoreError'],
    ['a key that stays taken', (faults) => faults.timeOut(key), 'LockTimeoutError'],
    ['a stall that is longer than the lease', during((faults) => faults.stall(15_000)), 'LockLostError'],
  ])('%s', async (_what, fault, outcome) => {
    const { call, faults, locks, own, shop } = await setting();
    const done = fault(faults);
    const { values, error } = await call();
    expect(values ?? error?.name).toEqual(outcome === 'sold' ? ['sold'] : outcome);
    await done;
    const isLost = outcome === 'LockLostError';
    expect(shop.seen).toEqual(isLost ? ['aborted', 'LockLostError'] : []);
    expect(shop.runs).toBe(isLost || outcome === 'sold' ? 1 : 0);
    if (isLost) expect(locks).toHaveLost(key);
    else expect(locks).not.toHaveLost(key);
    if (outcome === 'LockTimeoutError') expect(locks).toHaveTimedOut(key);
    if (shop.runs > 0) expect(locks).toHaveLocked(key, { times: 1, by: `Shop.${returns}` });
    faults.clear();
    expect(locks).toHoldNothing();
    expect(await own.tryAcquire(key)).not.toBeNull();
  });

  it.each([key, '*', /^(promise|observable|iterable)-/])(
    'lose(%s): the signal aborts now, assertHeld() throws, LockLostError',
    async (which) => {
      const { call, faults, locks, shop } = await setting();
      const called = call();
      await passTime(5_000);
      await faults.lose(which);
      expect(shop.seen).toEqual(['aborted']);
      const { error, values } = await called;
      expect(error).toBeInstanceOf(LockLostError);
      expect(shop.seen).toEqual(['aborted', 'LockLostError']);
      if (returns === 'promise') expect(error).toHaveProperty('result', 'sold');
      expect(values).toBeUndefined();
      expect(locks).toHaveLost(key);
      expect(locks).toHoldNothing();
    },
  );

  it('lose(): the key is somebody else’s, for as long as the lease was', async () => {
    const { call, faults, own } = await setting();
    void call();
    await passTime(5_000);
    await faults.lose(key);
    expect(await own.tryAcquire(key)).toBeNull();
    await passTime(10_000);
    expect(await own.tryAcquire(key)).not.toBeNull();
  });

  it('refuse(acquire, error): the error is the cause, and the call is not tried again', async () => {
    const { call, faults, shop } = await setting();
    const cause = new Error('NOAUTH');
    const refused = faults.refuse('acquire', cause);
    expect((await call()).error).toMatchObject({ name: 'StoreError', cause, transient: false });
    await refused;
    expect(shop.runs).toBe(0);
  });

  it('slow: it waits for the late reply', async () => {
    const { call, faults, locks } = await setting();
    faults.slow(400);
    const called = call();
    await passTime(399);
    expect(locks).not.toHaveLocked(key);
    await passTime(2);
    expect(locks).toHaveLocked(key);
    expect(await called).toEqual({ values: ['sold'] });
  });

  it('shutDown: a waiter rejects, a body is drained', async () => {
    const { call, faults } = await setting();
    const first = call();
    await passTime(15_000);
    const second = call();
    await passTime(100);
    const closed = faults.shutDown();
    expect((await second).error).toBeInstanceOf(LockAbortedError);
    expect((await second).error).toHaveProperty('reason', 'shutdown');
    await closed;
    expect(await first).toEqual({ values: ['sold'] });
  });
});

it.each(['acquire', 'release'] as const)('a request whose reply is dropped is made: %s', async (request) => {
  const inner = memoryStore();
  const made = jest.spyOn(inner.mutex, request);
  const store = faultyStore(inner);
  const locks = new Locks(store, { logger: false });
  const dropped = store.faults.dropReply(request);
  expect(await locks.using('k', async () => 5)).toBe(5);
  await dropped;
  await locks.close();
  expect(made).toHaveBeenCalledTimes(2);
});

describe('lose', () => {
  it('says what is held if the key is not', async () => {
    const { locks, own } = await open();
    const { faults } = locks;
    await expect(faults.lose()).rejects.toThrow('faults.lose("*"): nobody holds it. Nothing is held.');
    await own.acquire('promise-locks');
    await expect(faults.lose('promise-lock')).rejects.toThrow('Held: promise-locks.');
  });

  it.each(['read', 'write', 'semaphore'] as const)('takes a %s lease', async (kind) => {
    const { locks, own } = await open();
    const lease = await (kind === 'semaphore' ? own.semaphore('k', { permits: 1 }) : own.readWriteLock('k')[kind]).acquire();
    await locks.faults.lose('k');
    expect(lease.signal.aborted).toBe(true);
    expect(locks).toHaveLost('k');
    // A read lock is shared with the one that has it now.
    const other = kind === 'semaphore' ? own.semaphore('k', { permits: 1 }) : own.readWriteLock('k').write;
    expect(await other.tryAcquire()).toBeNull();
  });
});
