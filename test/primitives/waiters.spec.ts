import { Locks, StoreError, type AcquireReply, type LeaseDriver } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { getEventListeners } from 'node:events';
import { gate } from '../contract/gate.js';
import { rejection } from '../contract/rejection.js';
import { eventually } from '../support/eventually.js';
import { renewing } from '../contract/renewing.js';
import { pause } from '../support/time.js';
import type { RecordWakeUps } from '../../lib/stores/records/record.table.js';

const KEY = 'order:42';
const TAKEN: AcquireReply = { granted: false, remaining: 60_000, holder: 'app@host:1:other', ahead: 0 };
const open: Locks[] = [];
afterEach(() => Promise.all(open.splice(0).map((locks) => locks.close())));

function locksOver(kind: 'mutex' | 'semaphore', change: (real: LeaseDriver) => Partial<LeaseDriver>, requestTimeout = 100): Locks {
  const store = memoryStore();
  const real = store[kind]!;
  const driver = Object.assign(Object.create(real) as LeaseDriver, change(real));
  const locks = new Locks({ ...store, requestTimeout, [kind]: driver }, { logger: false, shutdownTimeout: 0 });
  open.push(locks);
  return locks;
}

describe('the store that answers once, and then no more, is an outage and not contention at the end of a patience (G9)', () => {
  const calls = 30;

  it('behind a holder elsewhere', async () => {
    const never = new Promise<never>(() => undefined);
    const errors = await Promise.all(
      Array.from({ length: calls }, (_, i) => {
        let asked = 0;
        const acquire = (): Promise<AcquireReply> => (asked++ === 0 ? Promise.resolve(TAKEN) : never);
        const locks = locksOver('mutex', () => ({ acquire, leave: async () => undefined }));
        return rejection(locks.acquire(KEY, { waitTimeout: 400 + 3 * i, retryInterval: 20_000 }));
      }),
    );
    for (const error of errors) expect(error).toBeInstanceOf(StoreError);
  });

  it('behind a holder of the same process', async () => {
    const never = new Promise<never>(() => undefined);
    for (let i = 0; i < calls; i++) {
      const locks = locksOver('mutex', () => ({ renew: renewing(() => never) }), 20);
      const lease = await locks.acquire(KEY, { keyTimeout: 60_000 });
      expect(await rejection(locks.acquire(KEY, { waitTimeout: 10 + (i % 5), retryInterval: 5_000 }))).toBeInstanceOf(StoreError);
      await lease.release();
    }
  });
});

describe('a waiter', () => {
  it('for a share asks when the first of several offers ends, though it was told of a later end after that (G8)', async () => {
    let asked = 0;
    const owners: string[] = [];
    const locks = locksOver('semaphore', (real) => ({
      acquire(request) {
        asked++;
        owners.push(request.owner);
        return real.acquire(request);
      },
    }));
    const pool = locks.semaphore(KEY, { permits: 1 });
    const held = await new Locks(locks.store).semaphore(KEY, { permits: 1 }).acquire({ keyTimeout: 60_000 });
    const waiting = pool.acquire({ keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 30_000, reentrant: false });
    const wakeUps = locks.store.semaphore!.wakeUps as RecordWakeUps;
    await eventually(() => asked === 3);
    wakeUps.received(`${owners.at(-1)}\t100`);
    wakeUps.received(`${owners.at(-1)}\t60000`);
    await eventually(() => asked === 4, { within: 5_000 });
    await held.release();
    await (await waiting).release();
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
    await eventually(async () => (await locks.semaphore(KEY, { permits: 4, count: 4 }).tryAcquire()) !== null, { within: 1_000 });
  });

  it('behind a holder of its process looks by its own retryInterval once the one before it has given up (G8)', async () => {
    let renewals = 0;
    const locks = locksOver('mutex', (real) => ({
      renew(batch) {
        renewals++;
        return real.renew(batch);
      },
    }));
    const lease = await locks.acquire(KEY, { keyTimeout: 60_000 });
    const first = rejection(locks.acquire(KEY, { waitTimeout: 50, retryInterval: 60_000 }));
    const second = locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 50 });
    await first;
    const before = renewals;
    await eventually(() => renewals > before + 1, { within: 5_000 });
    await lease.release();
    await (await second).release();
  });
});

describe('the renewals for which callers wait', () => {
  it('are not sent once more for each caller that comes while one has no answer', async () => {
    let renewals = 0;
    const never = new Promise<never>(() => undefined);
    const locks = locksOver('mutex', () => ({ renew: renewing(() => (renewals++, never)) }), 60_000);
    const lease = await locks.acquire(KEY, { keyTimeout: 60_000 });
    const caller = new AbortController();
    const options = { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 200, signal: caller.signal };
    const waiting = [rejection(locks.acquire(KEY, options))];
    await eventually(() => renewals === 1, { within: 5_000 });
    for (let i = 0; i < 100; i++) {
      waiting.push(rejection(locks.acquire(KEY, options)));
      await pause(2);
    }
    expect(renewals).toBeLessThan(4);
    caller.abort();
    await Promise.all(waiting);
    await lease.release();
  });
});

describe('the signal of a multi-lock', () => {
  it('leaves no listener at the signals of its leases when it is released (G7)', async () => {
    const locks = new Locks(memoryStore(), { logger: false });
    open.push(locks);
    const lease = await locks.multiLock(['a', 'b']).acquire();
    const listened = gate();
    lease.signal.addEventListener('abort', () => listened.open());
    const signals = lease.leases.map(({ signal }) => signal);
    expect(signals.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([1, 1]);
    await lease.release();
    expect(signals.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([0, 0]);
    expect(lease.signal.aborted).toBe(false);
  });
});
