// What code under test sees of each fault, whatever it returns.
import fc from 'fast-check';
import { LockAbortedError, LockLostError, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { anyFaults, faultyStore, type LockFaults, type FaultyStore, LockProbe, passTime } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { closeAll, open, outcomeOf, Shop, valuesOf, type Returns } from './shop.js';

expect.extend(lockMatchers);
afterEach(closeAll);

const BODY = 20_000;
const kinds: Returns[] = ['promise', 'observable', 'iterable'];

describe.each(kinds)('a call that returns a %s', (returns) => {
  const key = `${returns}-locks`;
  async function setting() {
    const { app, locks } = await open();
    const shop = app.get(Shop);
    return { app, locks, faults: locks.faults, shop, call: () => outcomeOf(valuesOf(shop, returns)) };
  }

  it('goes well without a fault', async () => {
    const { call, locks, shop } = await setting();
    const called = call();
    await passTime(BODY);
    expect(await called).toEqual({ values: ['sold'] });
    expect(shop.seen).toEqual([]);
    expect(locks).toHaveLocked(key, { times: 1, by: `Shop.${returns}` });
    expect(locks).toHoldNothing();
  });

  it.each([key, '*', /^(promise|observable|iterable)-/])(
    'lose(%s): the signal aborts now, assertHeld() throws, LockLostError',
    async (which) => {
      const { call, faults, locks, shop } = await setting();
      const called = call();
      await passTime(5_000);
      await faults.lose(which);
      expect(shop.seen).toEqual(['aborted']);
      await passTime(BODY);
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
    const { call, faults, app } = await setting();
    void call();
    await passTime(5_000);
    await faults.lose(key);
    const own = app.get(Locks);
    expect(await own.tryAcquire(key)).toBeNull();
    await passTime(10_000);
    expect(await own.tryAcquire(key)).not.toBeNull();
  });

  it('outage: StoreError when the wait timeout is over', async () => {
    const { call, faults, shop } = await setting();
    faults.outage(60_000);
    const called = call();
    await passTime(3_000);
    const { error } = await called;
    expect(error).toBeInstanceOf(StoreError);
    expect(shop.runs).toBe(0);
  });

  it('a short outage is waited for', async () => {
    const { call, faults } = await setting();
    faults.outage(500);
    const called = call();
    await passTime(BODY + 3_000);
    expect(await called).toEqual({ values: ['sold'] });
  });

  it.each(['a promise', 'clear()'])('an outage until %s', async (what) => {
    const { call, faults } = await setting();
    let end!: () => void;
    faults.outage(what === 'a promise' ? new Promise<void>((resolve) => (end = resolve)) : undefined);
    const called = call();
    await passTime(500);
    if (what === 'a promise') end();
    else faults.clear();
    await passTime(BODY + 3_000);
    expect(await called).toEqual({ values: ['sold'] });
  });

  it.each([
    [5_000, 'nothing'],
    [30_000, 'LockLostError'],
  ])('an outage of %s ms while the body runs: %s', async (length, seen) => {
    const { call, faults, shop } = await setting();
    const called = call();
    await passTime(1_000);
    faults.outage(length);
    await passTime(BODY + 20_000);
    const outcome = await called;
    expect(outcome.error?.name ?? 'nothing').toBe(seen);
    expect(shop.seen).toEqual(seen === 'nothing' ? [] : ['aborted', 'LockLostError']);
  });

  it('refuse(acquire): StoreError at once', async () => {
    const { call, faults, shop } = await setting();
    const refused = faults.refuse('acquire');
    const { error } = await call();
    await refused;
    expect([error, shop.runs]).toEqual([expect.any(StoreError), 0]);
    expect(error).toHaveProperty('transient', false);
  });

  it('refuse(acquire, error): its cause is what was given', async () => {
    const { call, faults } = await setting();
    const cause = new Error('NOAUTH');
    void faults.refuse('acquire', cause);
    expect((await call()).error).toMatchObject({ name: 'StoreError', cause });
  });

  it.each(['acquire', 'renew', 'release'] as const)('dropReply(%s): nothing', async (request) => {
    const { app, call, faults, locks, shop } = await setting();
    const dropped = faults.dropReply(request, request === 'renew' ? 2 : 1);
    const called = call();
    await passTime(BODY + 5_000);
    await dropped;
    expect(await called).toEqual({ values: ['sold'] });
    expect([shop.runs, shop.seen]).toEqual([1, []]);
    expect(locks).toHoldNothing();
    expect(await app.get(Locks).tryAcquire(key)).not.toBeNull();
  });

  it('slow: it waits for the late reply', async () => {
    const { call, faults, locks } = await setting();
    faults.slow(400);
    const called = call();
    await passTime(399);
    expect(locks).not.toHaveLocked(key);
    await passTime(1);
    expect(locks).toHaveLocked(key);
    faults.slow(0);
    await passTime(BODY);
    expect(await called).toEqual({ values: ['sold'] });
  });

  it('slow, by more than the requestTimeout: as an outage', async () => {
    const { call, faults } = await setting();
    faults.slow(60_000);
    const called = call();
    await passTime(6_000);
    expect((await called).error).toBeInstanceOf(StoreError);
    faults.slow(0);
  });

  it('timeOut: the key stays taken', async () => {
    const { call, faults, locks, shop } = await setting();
    faults.timeOut(key);
    const called = call();
    await passTime(3_000);
    expect((await called).error).toBeInstanceOf(LockTimeoutError);
    expect(shop.runs).toBe(0);
    expect(locks).toHaveTimedOut(key);
  });

  it('stall: the lease is lost if it was longer', async () => {
    const { call, faults, locks, shop } = await setting();
    const called = call();
    await passTime(1_000);
    await faults.stall(15_000);
    expect(shop.seen).toEqual(['aborted']);
    expect(locks.events.map(({ event }) => event)).toContain('lag');
    await passTime(BODY);
    expect((await called).error).toBeInstanceOf(LockLostError);
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
    await passTime(5_000);
    await closed;
    expect(await first).toEqual({ values: ['sold'] });
  });
});

describe('dropReply', () => {
  it.each(['acquire', 'release'] as const)('a request whose reply is dropped is made: %s', async (request) => {
    await open();
    const inner = memoryStore();
    const made = jest.spyOn(inner.mutex, request);
    const locks = new Locks(faultyStore(inner, [{ on: request, dropReply: request }]), { logger: false });
    const used = locks.using('k', async () => 5);
    await passTime(5_000);
    expect(await used).toBe(5);
    expect(made).toHaveBeenCalledTimes(2);
    await locks.close();
  });
});

describe('lose', () => {
  it('says what is held if the key is not', async () => {
    const { app, locks } = await open();
    await expect(locks.faults.lose()).rejects.toThrow('faults.lose("*"): nobody holds it. Nothing is held.');
    await app.get(Locks).acquire('promise-locks');
    await expect(locks.faults.lose('promise-lock')).rejects.toThrow('Held: promise-locks. The nearest key is "promise-locks".');
  });

  it.each(['read', 'write', 'semaphore'] as const)('takes a %s lease', async (kind) => {
    const { app, locks } = await open();
    const own = app.get(Locks);
    const lease = await (kind === 'semaphore' ? own.semaphore('k', { permits: 1 }) : own.readWriteLock('k')[kind]).acquire();
    await locks.faults.lose('k');
    expect(lease.signal.aborted).toBe(true);
    expect(locks).toHaveLost('k');
    // A read lock is shared with whoever has it now.
    const other = kind === 'semaphore' ? own.semaphore('k', { permits: 1 }) : own.readWriteLock('k').write;
    expect(await other.tryAcquire()).toBeNull();
  });
});

describe('a schedule', () => {
  async function run(...schedule: ConstructorParameters<typeof LockFaults>) {
    const { closing, locks } = await scheduled(...schedule);
    const outcome = locks
      .using('k', async () => passedBody(), { keyTimeout: 3_000 })
      .then(
        () => 'done',
        (error: Error) => error.name,
      );
    await passTime(70_000);
    await closing();
    return outcome;
  }
  const passedBody = () => new Promise<void>((resolve) => setTimeout(resolve, 10_000));
  async function scheduled(...schedule: ConstructorParameters<typeof LockFaults>) {
    await open();
    const locks = new Locks(faultyStore(memoryStore(), ...schedule), { logger: false });
    const probe = new LockProbe(locks);
    return {
      locks,
      closing: async () => {
        await locks.close();
        probe.onApplicationShutdown();
      },
    };
  }

  it.each([
    [[], 'done'],
    [[{ at: 200, outage: 1_000 }], 'done'],
    [[{ at: 200, outage: 8_000 }], 'LockLostError'],
    [[{ on: 'renew', nth: 3, lose: true }], 'LockLostError'],
    [[{ on: 'renew', nth: 300, lose: true }], 'done'],
    [[{ on: 'acquire', lose: true }], 'LockLostError'],
    [[{ on: 'release', lose: true }], 'LockLostError'],
    [[{ on: 'acquire', refuse: 'acquire' }], 'StoreError'],
    [[{ on: 'acquire', dropReply: 'acquire' }], 'done'],
    [[{ on: 'acquire', timeOut: 'k' }], 'LockTimeoutError'],
    [[{ at: 5_000, stall: 9_000 }], 'LockLostError'],
    [[{ at: 0, slow: 100 }], 'done'],
    [[{ on: 'acquire', outage: 60_000 }], 'StoreError'],
    [[{ at: 10, shutDown: true }], 'done'],
  ] as const)('%j: %s', async (schedule, outcome) => {
    expect(await run(schedule)).toBe(outcome);
  });

  it('can be any, and leaves nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 6 }).map(anyFaults), async (schedule) => {
        const { closing, locks } = await scheduled(schedule);
        const probe = new LockProbe(locks);
        let running = 0;
        const body = async () => {
          if (++running > 1 && !probe.events.some(({ event }) => event === 'lost')) throw new Error('two bodies at once');
          await new Promise<void>((resolve) => setTimeout(resolve, 2_000));
          running--;
        };
        const calls = Promise.allSettled(
          Array.from({ length: 3 }, () => locks.using('k', body, { keyTimeout: 3_000, waitTimeout: 30_000 })),
        );
        await passTime(60_000);
        const { faults } = locks.store as FaultyStore;
        faults.clear();
        await passTime(60_000);
        for (const call of await calls) {
          if (call.status === 'rejected')
            expect(call.reason).toMatchObject({ name: expect.stringMatching(/^(LockLost|LockTimeout|Store)Error$/) });
        }
        expect(probe).toHoldNothing();
        expect(await locks.tryAcquire('k')).not.toBeNull();
        await closing();
        probe.onApplicationShutdown();
      }),
      { numRuns: 50 },
    );
  });
});
