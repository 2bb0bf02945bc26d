import '../support/virtual-time.js';
import type { AcquireReply, AcquireRequest, LeaseDriver, WakeUps } from 'nestjs-distributed-lock/core';
import { Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { getEventListeners } from 'node:events';
import { closedAfter } from '../support/closed-after.js';
import { gate } from '../support/gate.js';
import { rejection } from '../support/rejection.js';
import { candidate, elected } from '../contract/candidates.js';
import { eventually } from '../support/eventually.js';
import { renewing } from '../contract/renewing.js';
import { pause } from '../support/time.js';
import type { RecordWakeUps } from '../../lib/stores/records/record.table.js';

const KEY = 'order:42';
const TAKEN: AcquireReply = { granted: false, remaining: 60_000, holder: 'app@host:1:other', ahead: 0 };
const MINUTE = 60_000;

/** Locks over a memory store, one of whose drivers is changed. */
function locksOver(kind: 'mutex' | 'semaphore', change: (real: LeaseDriver) => Partial<LeaseDriver>, requestTimeout = 100): Locks {
  const store = memoryStore();
  const real = store[kind]!;
  const driver = Object.assign(Object.create(real) as LeaseDriver, change(real));
  return closedAfter(new Locks({ ...store, requestTimeout, [kind]: driver }, { logger: false, shutdownTimeout: 0 }));
}

describe('a store that answers once, and then no more, is an outage and not contention at the end of a wait timeout (G9)', () => {
  const never = new Promise<never>(() => undefined);

  it.each([400, 403, 450, 487])('behind a holder elsewhere, with a wait timeout of %d ms', async (waitTimeout) => {
    let asked = 0;
    const acquire = (): Promise<AcquireReply> => (asked++ === 0 ? Promise.resolve(TAKEN) : never);
    const locks = locksOver('mutex', () => ({ acquire, leave: async () => undefined }));
    expect(await rejection(locks.acquire(KEY, { waitTimeout, retryInterval: 20_000 }))).toBeInstanceOf(StoreError);
  });

  it('behind a holder of the same process, also for those that are not the first to wait; one renewal tells them all', async () => {
    let renewals = 0;
    const locks = locksOver('mutex', () => ({ renew: renewing(() => (renewals++, never)) }), 20);
    const lease = await locks.acquire(KEY, { keyTimeout: MINUTE });
    const patiences = [2_000, 1_000, 1_001, 1_002];
    const waiting = patiences.map((waitTimeout) => rejection(locks.acquire(KEY, { waitTimeout })));
    for (const error of await Promise.all(waiting.slice(1))) expect(error).toBeInstanceOf(StoreError);
    expect(renewals).toBe(1);
    expect(await waiting[0]).toBeInstanceOf(StoreError);
    await lease.release();
  });

  it('but not where only the answer to the last request is lost, and a later renewal was answered', async () => {
    let renewals = 0;
    const locks = locksOver('mutex', () => ({ renew: renewing(() => (renewals++ === 0 ? never : Promise.resolve('renewed'))) }));
    const lease = await locks.acquire(KEY, { keyTimeout: 600 });
    expect(await rejection(locks.acquire(KEY, { waitTimeout: 150 }))).toBeInstanceOf(LockTimeoutError);
    expect(renewals).toBe(2);
    await lease.release();
  });

  it.each([10, 11, 14])('behind a holder of the same process, with a wait timeout of %d ms', async (waitTimeout) => {
    const locks = locksOver('mutex', () => ({ renew: renewing(() => never) }), 20);
    const lease = await locks.acquire(KEY, { keyTimeout: MINUTE });
    expect(await rejection(locks.acquire(KEY, { waitTimeout, retryInterval: 5_000 }))).toBeInstanceOf(StoreError);
    await lease.release();
  });
});

// A waiter that is not woken in time would wait for longer than a test may take.
describe('a waiter', () => {
  it('for a share asks when the first of several offers ends, though a later end was announced after that (G8)', async () => {
    const owners: string[] = [];
    const locks = locksOver('semaphore', (real) => ({ acquire: (request) => (owners.push(request.owner), real.acquire(request)) }));
    const pool = locks.semaphore(KEY, { permits: 1 });
    const held = await new Locks(locks.store).semaphore(KEY, { permits: 1 }).acquire({ keyTimeout: MINUTE });
    const waiting = pool.acquire({ keyTimeout: MINUTE, waitTimeout: MINUTE, retryInterval: 30_000, reentrant: false });
    const wakeUps = locks.store.semaphore!.wakeUps as RecordWakeUps;
    await eventually(() => owners.length === 3);
    wakeUps.received(`${owners.at(-1)}\t100`);
    wakeUps.received(`${owners.at(-1)}\t60000`);
    await eventually(() => owners.length === 4);
    await held.release();
    await (await waiting).release();
  });

  it('of the same process does not make a fixed lease longer when its wait timeout ends (renew: false)', async () => {
    const locks = locksOver('mutex', () => ({}));
    const lease = await locks.acquire(KEY, { keyTimeout: 1000, renew: false });
    expect(await rejection(locks.acquire(KEY, { waitTimeout: 500, reentrant: false }))).toBeInstanceOf(LockTimeoutError);
    expect(lease.remaining()).toBeLessThanOrEqual(500);
    await lease.release();
  });

  it('for a permit that is passed on in its process leaves the one that is asked for it, and takes no other (G2, G7)', async () => {
    const answer = gate();
    const owners = new Set<string>();
    const locks = locksOver('semaphore', (real) => ({
      async acquire(request) {
        owners.add(request.owner);
        if (owners.size > 2) await answer.passed;
        return real.acquire(request);
      },
    }));
    const pool = locks.semaphore(KEY, { permits: 4 });
    const holders = await Promise.all([pool.acquire(), pool.acquire()]);
    const waiting = [pool.acquire(), pool.acquire()];
    // The second one, who came when others waited, may pass its permit on.
    await holders[1].release();
    await waiting[0];
    expect(owners.size).toBe(4);
    answer.open();
    for (const lease of [holders[0], ...waiting]) await (await lease).release();
    await eventually(async () => (await locks.semaphore(KEY, { permits: 4, count: 4 }).tryAcquire()) !== null);
  });
});

describe('a candidate whose inbox does not open', () => {
  /** An inbox that is opened by the test, or never. */
  class Inbox implements WakeUps {
    isOpen = false;
    readonly listeners = new Map<string, () => void>();
    open(): Promise<void> {
      return new Promise(() => undefined);
    }
    listen(owner: string, wake: () => void): () => void {
      this.listeners.set(owner, wake);
      return () => void this.listeners.delete(owner);
    }
    succeed(): void {
      this.isOpen = true;
      for (const wake of [...this.listeners.values()]) wake();
    }
  }

  const opensLate = async () => {
    const inbox = new Inbox();
    const asked: string[] = [];
    const store = memoryStore();
    const mutex = Object.assign(Object.create(store.mutex) as LeaseDriver, {
      acquire: (request: AcquireRequest) => (asked.push(request.owner), store.mutex.acquire(request)),
      wakeUps: inbox,
    });
    const [leader, locks] = [store, { ...store, mutex }].map((each) => closedAfter(new Locks(each, { logger: false }))) as [Locks, Locks];
    const lease = await leader.acquire('shop-leader', { keyTimeout: MINUTE });
    const election = locks.leaderElection('shop', { retryInterval: 10_000 });
    const work = jest.fn();
    const running = election.run(work);
    await eventually(() => asked.length > 3);
    return { inbox, asked, leader, lease, election, work, running };
  };

  it('asks until it opens, has the same entry then, and rests there; it leaves no listener behind (G7)', async () => {
    const { inbox, asked, lease, work, running } = await opensLate();
    inbox.succeed();
    const before = asked.length;
    await pause(500);
    expect(asked).toHaveLength(before);
    expect(new Set(asked).size).toBe(1);
    await lease.release();
    inbox.succeed();
    await running;
    expect(work).toHaveBeenCalledTimes(1);
    await eventually(() => inbox.listeners.size === 0);
  });

  it('can be called off at once while it waits for that', async () => {
    const { leader, lease, election, work, running } = await opensLate();
    const start = performance.now();
    await election.resign();
    expect(performance.now() - start).toBeLessThan(10);
    expect(await running).toBeUndefined();
    expect(work).not.toHaveBeenCalled();
    await lease.release();
    expect(await leader.tryAcquire('shop-leader')).not.toBeNull();
  });
});

it('a leader keeps its term while it works, also where the defaults of the Locks do not renew', async () => {
  const locks = closedAfter(new Locks(memoryStore(), { logger: false, defaults: { renew: false, keyTimeout: 1000 } }));
  const leader = candidate(locks.leaderElection('shop'));
  const term = await elected(leader);
  await pause(5000);
  expect([leader.terms.length, term.signal.aborted]).toEqual([1, false]);
  await leader.election.resign();
});

describe('a multi-lock', () => {
  it('is made of the locks of another copy of the package too, also of its multi-locks', async () => {
    const store = memoryStore();
    let other!: Locks;
    await jest.isolateModulesAsync(async () => {
      const copy = await import('nestjs-distributed-lock/core');
      other = closedAfter(new copy.Locks(store));
    });
    const all = new Locks(store).multiLock(['a', other.mutex('b'), other.multiLock(['c', 'b'])]);
    await all.using(async (lease) => {
      expect(lease.key).toBe('a, b, c');
      for (const key of ['a', 'b', 'c']) expect(await other.tryAcquire(key, { reentrant: false })).toBeNull();
    });
  });

  it('leaves no listener at the signals of its leases when it is released (G7)', async () => {
    const locks = locksOver('mutex', () => ({}));
    const lease = await locks.multiLock(['a', 'b']).acquire();
    lease.signal.addEventListener('abort', () => undefined);
    const listeners = () => lease.leases.map(({ signal }) => getEventListeners(signal, 'abort').length);
    expect(listeners()).toEqual([1, 1]);
    await lease.release();
    expect(listeners()).toEqual([0, 0]);
    expect(lease.signal.aborted).toBe(false);
  });
});
