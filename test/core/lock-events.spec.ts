import { setTimeout as pause } from 'node:timers/promises';
import { Locks, StoreError, type Lease, type LockEvents } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';

const NAMES = ['acquired', 'waiting', 'released', 'passedOn', 'timeout', 'skipped', 'aborted', 'renewed', 'lost'] as const;

function listen(locks: Locks) {
  const told: { event: keyof LockEvents; payload: LockEvents[keyof LockEvents] }[] = [];
  for (const event of NAMES) locks.on(event, (payload) => void told.push({ event, payload }));
  return {
    names: () => told.map(({ event }) => event),
    of: <E extends keyof LockEvents>(wanted: E) =>
      told.filter(({ event }) => event === wanted).map(({ payload }) => payload as LockEvents[E]),
  };
}
const open = (store = memoryStore()) => new Locks(store, { logger: false });
const time = expect.any(Number) as number;

describe('events', () => {
  it('name the caller and the kind of lock', async () => {
    const locks = open();
    const told = listen(locks);
    const { read, write } = locks.readWriteLock('price');
    await locks.using('key', () => 5, { label: 'Stock.buy' });
    await read.using(() => 5, { label: 'Stock.look' });
    await write.using(() => 5);
    await locks.semaphore('press', { permits: 2 }).using(() => 5);
    expect(told.of('released').map(({ key, kind, label }) => [key, kind, label])).toEqual([
      ['key', 'mutex', 'Stock.buy'],
      ['price', 'read', 'Stock.look'],
      ['price', 'write', undefined],
      ['press', 'semaphore', undefined],
    ]);
  });

  it('say how a key was come by, and who passed it on to whom', async () => {
    const store = memoryStore();
    const [locks, others] = [open(store), open(store)];
    const told = listen(locks);
    const first = await locks.acquire('key');
    const [second, third] = ['second', 'third'].map((label) => locks.acquire('key', { label, waitTimeout: 5000 }));
    // The first one came when nobody waited: its release is a request, which reserves the turns of the others.
    await first.release();
    await (await second!).release();
    const { owner } = await third!;
    expect(told.of('passedOn')).toEqual([{ key: 'key', kind: 'mutex', label: 'second', owner, to: 'third' }]);
    await (await third!).release();
    const other = await others.acquire('key');
    const last = locks.acquire('key', { waitTimeout: 5000 });
    await eventually(() => told.of('waiting').length === 3);
    await other.release();
    await (await last).release();
    expect(told.of('acquired').map(({ via }) => via)).toEqual(['free', 'store', 'handover', 'store']);
  });

  it('name the holder at a timeout, and tell of a skip', async () => {
    const locks = open();
    const told = listen(locks);
    const { owner } = await locks.acquire('key', { label: 'Jobs.clean' });
    const skipping = { waitTimeout: 0, onTimeout: 'skip', label: 'Jobs.report' } as const;
    expect(await locks.using('key', () => 5, skipping)).toBeUndefined();
    expect(await locks.tryAcquire('key')).toBeNull();
    const timeout = { key: 'key', kind: 'mutex', waited: time, attempts: 1, holder: owner, holderLabel: 'Jobs.clean', waitTimeout: 0 };
    expect(told.of('timeout')).toEqual(['Jobs.report', undefined].map((label) => ({ ...timeout, label })));
    expect(told.of('skipped')).toEqual([{ key: 'key', kind: 'mutex', label: 'Jobs.report', waited: time }]);
  });

  it('tell of waits that were called off', async () => {
    const locks = open();
    const told = listen(locks);
    const holder = await locks.acquire('key');
    const abort = new AbortController();
    const waits = [locks.acquire('key', { waitTimeout: 5000, signal: abort.signal }), locks.acquire('key', { waitTimeout: 5000 })].map(
      (wait) => wait.catch(() => undefined),
    );
    await eventually(() => told.of('waiting').length === 2);
    abort.abort();
    await waits[0];
    locks.stopWaiting();
    await waits[1];
    expect(told.of('aborted').map(({ reason }) => reason)).toEqual(['signal', 'shutdown']);
    await holder.release();
  });

  it('tell of renewals, and how much of the lease was left', async () => {
    const locks = open();
    const told = listen(locks);
    const lease = await locks.acquire('key', { keyTimeout: 300 });
    await eventually(() => told.of('renewed').length >= 2);
    for (const { margin } of told.of('renewed')) {
      expect(margin).toBeGreaterThan(0);
      expect(margin).toBeLessThan(0.7);
    }
    await lease.release();
  });

  it('tell why a lease was lost', async () => {
    const store = memoryStore();
    const locks = open(store);
    const told = listen(locks);
    const stolen = await locks.acquire('stolen', { keyTimeout: 300, label: 'Stock.buy' });
    await store.mutex.release({ ...stolen, key: 'stolen', owner: stolen.owner, keepFor: 0 });
    await locks.acquire('fixed', { keyTimeout: 100, renew: false });
    await eventually(() => told.of('lost').length === 2);
    const reasons = new Map(told.of('lost').map(({ key, reason, label, held }) => [key, [reason, label, held > 50]]));
    expect(reasons).toEqual(
      new Map([
        ['stolen', ['taken', 'Stock.buy', true]],
        ['fixed', ['expired', undefined, true]],
      ]),
    );
  });

  it('make a gauge that never drifts: through hand-overs, losses, re-entrant calls, timeouts and close()', async () => {
    const store = memoryStore();
    const all = [open(store), open(store)];
    let held = 0;
    let most = 0;
    for (const locks of all) {
      locks.on('acquired', () => void (most = Math.max(most, ++held)));
      locks.on('released', () => void held--);
      locks.on('lost', ({ afterRelease }) => void (held -= afterRelease ? 0 : 1));
    }
    const steal = ({ key, owner }: Lease) => store.mutex.release({ key, owner, keepFor: 0 });
    const call = async (index: number) => {
      const locks = all[index % 2]!;
      const body = async (lease: Lease) => {
        if (index % 7 === 0) await steal(lease);
        if (index % 5 === 0) await locks.using(lease.key, () => pause(1));
        if (index % 3 === 0) await pause(2);
      };
      await locks
        .using(`key ${index % 4}`, body, { keyTimeout: 60, waitTimeout: index % 11 === 0 ? 3 : 5000, retryInterval: 10 })
        .catch(() => undefined);
    };
    await Promise.all(Array.from({ length: 400 }, (_, index) => call(index)));
    await all[0]!.acquire('bare');
    await Promise.all(all.map((locks) => locks.close()));
    expect(most).toBeGreaterThan(1);
    expect(held).toBe(0);
  });

  it('balance a lease whose release got no answer', async () => {
    const store = memoryStore();
    const release = store.mutex.release.bind(store.mutex);
    let isAway = true;
    store.mutex.release = (request) => (isAway ? Promise.reject(new StoreError('away', { transient: true })) : release(request));
    const locks = open(store);
    const told = listen(locks);
    expect(await locks.using('key', () => 5)).toBe(5);
    expect(told.names()).toEqual(['acquired', 'released']);
    isAway = false;
    await locks.close();
    expect(told.names()).toEqual(['acquired', 'released']);
  });

  it('build no payload for listeners that have left', async () => {
    const locks = open();
    const stops = NAMES.map((name) => locks.on(name, jest.fn()));
    for (const stop of stops) stop();
    const { events } = (locks as unknown as { runtime: { events: { isAnyHeard: boolean } } }).runtime;
    expect(events.isAnyHeard).toBe(false);
  });
});
