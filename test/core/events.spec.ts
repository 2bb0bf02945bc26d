import '../support/virtual-time.js';
import { Locks, type Lease, type LockEvents, type LockLogger } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { LockEventEmitter } from '../../lib/core/model/events.js';
import { LockLog } from '../../lib/core/model/lock-log.js';
import { eventually } from '../support/eventually.js';
import { throwing } from '../support/rejection.js';
import { pause } from '../support/time.js';

const event = { key: 'k', kind: 'mutex', label: undefined } as const;
const released = { ...event, owner: 'o', fencingToken: 1, held: 1, limited: false };

describe('listeners', () => {
  it('are known to be there for as long as one of them listens', () => {
    const events = new LockEventEmitter(new LockLog(false));
    const stops = [events.on('lost', jest.fn()), events.on('lost', jest.fn())];
    expect([events.isHeard('lost'), events.isHeard('released')]).toEqual([true, false]);
    stops[0]!();
    expect(events.isHeard('lost')).toBe(true);
    for (const stop of stops) stop();
    expect(events.isHeard('lost')).toBe(false);
    events.on('lost', jest.fn());
    stops[1]!();
    expect(events.isHeard('lost')).toBe(true);
  });

  it('that reject are logged, and the others are called all the same', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const events = new LockEventEmitter(new LockLog(logger));
    const heard = jest.fn();
    events.on('released', () => Promise.reject(new Error('A fault of the listener.')));
    events.on('released', heard);
    events.emit('released', released);
    await new Promise(setImmediate);
    expect(heard).toHaveBeenCalledWith(released);
    expect(logger.error.mock.calls).toEqual([[expect.stringMatching(/"released".*A fault of the listener/)]]);
  });

  it.each([undefined, null, Object.create(null), Symbol('fault')])('may throw anything, such as %p', (thrown) => {
    const events = new LockEventEmitter(new LockLog({ warn: jest.fn(), error: jest.fn() }));
    events.on('released', throwing(thrown as Error));
    expect(() => events.emit('released', released)).not.toThrow();
  });

  it('may be one function many times, of which one stops, without a warning of a leak', async () => {
    const warnings = jest.fn();
    process.on('warning', warnings);
    const events = new LockEventEmitter(new LockLog(false));
    const heard = jest.fn();
    const stops = Array.from({ length: 50 }, () => events.on('released', heard));
    stops[0]!();
    stops[0]!();
    events.emit('released', released);
    await new Promise(setImmediate);
    process.off('warning', warnings);
    expect([heard.mock.calls.length, warnings.mock.calls]).toEqual([49, []]);
  });
});

it('a logger need not exist, nor have debug, and keeps its this', () => {
  const nobody = new LockEventEmitter(new LockLog(false));
  expect(() => (nobody.warn('NDL_TAKEN', 'w'), nobody.debug('d'))).not.toThrow();
  const logger: LockLogger & { lines: string[] } = {
    lines: [],
    warn(message) {
      this.lines.push(message);
    },
    error: () => undefined,
  };
  const events = new LockEventEmitter(new LockLog(logger));
  events.debug('d');
  events.warn('NDL_TAKEN', 'w');
  expect(logger.lines).toEqual(['w [NDL_TAKEN]']);
});

const NAMES = ['acquired', 'waiting', 'released', 'passedOn', 'timeout', 'skipped', 'aborted', 'renewed', 'lost'] as const;

function open(store = memoryStore()) {
  const locks = new Locks(store, { logger: false });
  const seen: { event: keyof LockEvents; payload: LockEvents[keyof LockEvents] }[] = [];
  const stops = NAMES.map((name) => locks.on(name, (payload) => void seen.push({ event: name, payload })));
  const of = <E extends keyof LockEvents>(wanted: E) =>
    seen.filter((each) => each.event === wanted).map(({ payload }) => payload as LockEvents[E]);
  return { store, locks, stops, of, names: () => seen.map((each) => each.event) };
}

describe('events of Locks', () => {
  it('name the caller and the kind of lock', async () => {
    const { locks, of } = open();
    const { read, write } = locks.readWriteLock('price');
    await locks.using('key', () => 5, { label: 'Stock.buy' });
    await read.using(() => 5, { label: 'Stock.look' });
    await write.using(() => 5);
    await locks.semaphore('press', { permits: 2 }).using(() => 5);
    expect(of('released').map(({ key, kind, label }) => [key, kind, label])).toEqual([
      ['key', 'mutex', 'Stock.buy'],
      ['price', 'read', 'Stock.look'],
      ['price', 'write', undefined],
      ['press', 'semaphore', undefined],
    ]);
  });

  it('say how a key was acquired, and who passed it on to which owner', async () => {
    const { locks, of, store } = open();
    const first = await locks.acquire('key');
    const [second, third] = ['second', 'third'].map((label) => locks.acquire('key', { label, waitTimeout: 5000 }));
    // The first one came when nobody waited: its release is a request, which reserves the turns of the others.
    await first.release();
    await (await second!).release();
    const { owner } = await third!;
    expect(of('passedOn')).toEqual([{ key: 'key', kind: 'mutex', label: 'second', owner, to: 'third' }]);
    await (await third!).release();
    const other = await new Locks(store, { logger: false }).acquire('key');
    const last = locks.acquire('key', { waitTimeout: 5000 });
    await eventually(() => of('waiting').length === 3);
    await other.release();
    await (await last).release();
    expect(of('acquired').map(({ via }) => via)).toEqual(['free', 'store', 'handover', 'store']);
  });

  it('name the holder at a timeout, and report a skip', async () => {
    const { locks, of } = open();
    const { owner } = await locks.acquire('key', { label: 'Jobs.clean' });
    const skipping = { waitTimeout: 0, onTimeout: 'skip', label: 'Jobs.report' } as const;
    expect(await locks.using('key', () => 5, skipping)).toBeUndefined();
    expect(await locks.tryAcquire('key')).toBeNull();
    const waited = expect.any(Number) as number;
    const timeout = { key: 'key', kind: 'mutex', waited, attempts: 1, holder: owner, holderLabel: 'Jobs.clean', waitTimeout: 0 };
    expect(of('timeout')).toEqual(['Jobs.report', undefined].map((label) => ({ ...timeout, label })));
    expect(of('skipped')).toEqual([{ key: 'key', kind: 'mutex', label: 'Jobs.report', waited }]);
  });

  it('report waits that were called off', async () => {
    const { locks, of } = open();
    const holder = await locks.acquire('key');
    const caller = new AbortController();
    const waits = [{ signal: caller.signal }, {}].map((more) =>
      locks.acquire('key', { waitTimeout: 5000, ...more }).catch((error: unknown) => error),
    );
    await eventually(() => of('waiting').length === 2);
    caller.abort();
    await waits[0];
    locks.stopWaiting();
    await waits[1];
    expect(of('aborted').map(({ reason }) => reason)).toEqual(['signal', 'shutdown']);
    await holder.release();
  });

  it('report renewals, and how much of the lease was left', async () => {
    const { locks, of } = open();
    const lease = await locks.acquire('key', { keyTimeout: 300 });
    await eventually(() => of('renewed').length >= 2);
    for (const { margin } of of('renewed')) {
      expect(margin).toBeGreaterThan(0);
      expect(margin).toBeLessThan(0.7);
    }
    await lease.release();
  });

  it('say why a lease was lost', async () => {
    const { locks, of, store } = open();
    const stolen = await locks.acquire('stolen', { keyTimeout: 300, label: 'Stock.buy' });
    await store.mutex.release({ key: 'stolen', owner: stolen.owner, keepFor: 0 });
    await locks.acquire('fixed', { keyTimeout: 100, renew: false });
    await eventually(() => of('lost').length === 2);
    const losses = of('lost').map(({ key, reason, label, held }) => [key, reason, label, held > 50]);
    expect(losses.sort()).toEqual([
      ['fixed', 'expired', undefined, true],
      ['stolen', 'taken', 'Stock.buy', true],
    ]);
  });

  it('make a gauge that never drifts: through hand-overs, losses, re-entrant calls, timeouts and close()', async () => {
    const { locks: one, store } = open();
    const all = [one, open(store).locks];
    let held = 0;
    let most = 0;
    for (const locks of all) {
      locks.on('acquired', () => void (most = Math.max(most, ++held)));
      locks.on('released', () => void held--);
      locks.on('lost', ({ afterRelease }) => void (held -= afterRelease ? 0 : 1));
    }
    const call = async (index: number) => {
      const locks = all[index % 2]!;
      const body = async ({ key, owner }: Lease) => {
        if (index % 7 === 0) await store.mutex.release({ key, owner, keepFor: 0 });
        if (index % 5 === 0) await locks.using(key, () => pause(1));
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

  it('have no payload built for listeners that have left', () => {
    const { locks, stops } = open();
    for (const stop of stops) stop();
    const { events } = locks['engine'].runtime;
    expect(events.needsContext).toBe(false);
  });
});
