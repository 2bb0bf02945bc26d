import { AsyncLocalStorage, AsyncResource, createHook } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import os from 'node:os';
import { performance as machine } from 'node:perf_hooks';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { onAbort, untilAborted } from '../../lib/core/util/abort.js';
import { after, Alarm, duration, idle, now, validity } from '../../lib/core/util/clock.js';
import type * as Clock from '../../lib/core/util/clock.js';
import { inParts } from '../../lib/core/util/in-parts.js';
import { LinkedEntry, LinkedList } from '../../lib/core/util/linked-list.js';
import { GarbageCount } from '../contract/garbage.js';
import { eventually } from '../support/eventually.js';
import { throwing } from '../support/rejection.js';

describe('callbacks of a signal', () => {
  const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
  let caller: AbortController;
  beforeEach(() => (caller = new AbortController()));

  it('are called once each, in order, by one listener, also if one is forgotten meanwhile', () => {
    const called: number[] = [];
    const forget = [0, 1, 2].map((index) => onAbort(caller.signal, () => (called.push(index), forget[0]!())));
    expect(listeners(caller.signal)).toBe(1);
    caller.abort();
    expect(called).toEqual([0, 1, 2]);
    expect(listeners(caller.signal)).toBe(0);
  });

  it('are not called when they are forgotten, once or twice, and the last one takes the listener with it', () => {
    const callbacks = [jest.fn(), jest.fn(), jest.fn()] as const;
    const [first, second] = callbacks.map((callback) => onAbort(caller.signal, callback)) as [() => void, () => void];
    for (const forget of [first, first, second]) forget();
    expect(listeners(caller.signal)).toBe(1);
    onAbort(caller.signal, callbacks[0])();
    first();
    caller.abort();
    expect(callbacks.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 1]);
    const other = new AbortController().signal;
    onAbort(other, callbacks[0])();
    expect(listeners(other)).toBe(0);
  });
});

describe('a promise until a signal aborts', () => {
  it('is the promise when the signal is late or there is none, and keeps no listener', async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(1), undefined)).toBe(1);
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(untilAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('is nothing when the signal aborts first, and a later rejection harms nobody', async () => {
    const caller = new AbortController();
    let fail!: (reason: Error) => void;
    const pending = untilAborted(new Promise((_resolve, reject) => (fail = reject)), caller.signal);
    caller.abort();
    expect(await pending).toBeUndefined();
    fail(new Error('too late'));
  });
});

describe('a linked list', () => {
  class Entry extends LinkedEntry<Entry> {
    constructor(readonly name: string) {
      super();
    }
  }
  let list: LinkedList<Entry>;
  let entries: Record<'a' | 'b' | 'c', Entry>;
  const names = (): string => [...list].map(({ name }) => name).join('');

  beforeEach(() => {
    list = new LinkedList();
    entries = { a: new Entry('a'), b: new Entry('b'), c: new Entry('c') };
    for (const entry of Object.values(entries)) list.add(entry);
  });

  it.each([
    ['a', 'bc', 'bca'],
    ['b', 'ac', 'acb'],
    ['c', 'ab', 'abc'],
  ] as const)('keeps the order of its entries when %s leaves and comes again', (name, without, again) => {
    expect([names(), list.first, list.size]).toEqual(['abc', entries.a, 3]);
    expect(list.delete(entries[name])).toBe(true);
    expect([names(), list.has(entries[name])]).toEqual([without, false]);
    expect(entries[name]).toMatchObject({ list: undefined, previous: undefined, next: undefined });
    expect([list.delete(entries[name]), new LinkedList<Entry>().delete(list.first!)]).toEqual([false, false]);
    list.add(entries[name]);
    expect([names(), list.size]).toEqual([again, 3]);
  });

  it('may lose entries during an iteration', () => {
    const seen: string[] = [];
    for (const entry of list) {
      seen.push(entry.name);
      list.delete(entries.a);
      list.delete(entries.b);
    }
    expect([seen.join(''), names()]).toEqual(['abc', 'c']);
  });
});

it('a list is cut by each measure, and an element that is too large is a part of its own', () => {
  const cut = (...sizes: number[]) => inParts(sizes, [10, 3], (size) => [size, 1]);
  expect(cut()).toEqual([]);
  expect(cut(4, 6, 1)).toEqual([[4, 6], [1]]);
  expect(cut(1, 1, 1, 1)).toEqual([[1, 1, 1], [1]]);
  expect(cut(1, 99, 1)).toEqual([[1], [99], [1]]);
});

it('people read milliseconds in the unit that fits', () => {
  const texts = ['0 ms', '999 ms', '8.2 s', '119 s', '12 min', '2 h', '2 d'];
  expect([0.4, 999, 8_240, 119_000, 720_000, 7_200_000, 172_800_000].map(duration)).toEqual(texts);
});

it('a lease is valid for its length less the larger of 2 ms and 1 %', () => {
  expect([1, 2, 100, 200, 60_000].map(validity)).toEqual([-1, 0, 98, 198, 59_400]);
  expect(validity(201)).toBeCloseTo(201 - 2.01, 10);
});

describe('time', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it.each([
    [-5, 1],
    [0.4, 1],
    [1, 1],
    [9.6, 10],
  ])('a delay of %d ms ends after %d ms, and is never cut short', (delay, end) => {
    const callback = jest.fn();
    after(delay, callback);
    jest.advanceTimersByTime(end - 1);
    if (delay > 0) expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it.each([2 ** 31, 2 ** 40, Infinity])('a delay of %d ms does not end early', (delay) => {
    const callback = jest.fn();
    after(delay, callback);
    jest.advanceTimersByTime(24 * 86_400_000);
    expect(callback).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(1);
  });

  it('an idle delay does not keep the process alive, and ends', async () => {
    jest.useRealTimers();
    const ticking = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = ticking();
    let isOver = false;
    void idle(20).then(() => (isOver = true));
    expect(ticking()).toBe(before);
    await eventually(() => isOver);
  });
});

describe('the clock since boot', () => {
  const HOURS = 3_600_000;
  /** The monotonic clock, and by how much that since boot is ahead of it. */
  let [monotonic, ahead] = [0, 0];
  afterEach(() => void jest.restoreAllMocks());

  /** A fresh clock, on a machine whose clock since boot has steps of so many milliseconds. */
  async function clockWith(step: number) {
    [monotonic, ahead] = [1_000_003, 0];
    jest.spyOn(performance, 'now').mockImplementation(() => monotonic);
    jest.spyOn(os, 'uptime').mockImplementation(() => (Math.floor((monotonic + ahead) / step) * step) / 1000);
    return freshClock();
  }

  async function freshClock() {
    let copy!: typeof Clock;
    await jest.isolateModulesAsync(async () => void (copy = await import('../../lib/core/util/clock.js')));
    return copy;
  }

  it.each([
    ['hundredths of a second', 10],
    ['whole seconds', 1_000],
  ])('that counts %s shows a suspend: not less than it was, and the same to all who ask', async (_steps, step) => {
    const { countSuspend, now, suspendedSince } = await clockWith(step);
    for (let each = 0; each < 20; each++) {
      monotonic += 12_347;
      countSuspend();
      const before = now();
      ahead += 5_003;
      countSuspend();
      const counted = now() - before;
      expect(counted).toBeGreaterThanOrEqual(5_003);
      expect(counted).toBeLessThanOrEqual(5_003 + 2 * step);
      expect(suspendedSince(before)).toBe(counted);
    }
  });

  it.each([
    ['hundredths of a second, looked at four times a second', 10, 250],
    ['whole seconds, looked at four times a second', 1_000, 250],
    ['hundredths of a second, looked at after hours', 10, 7 * HOURS],
    ['whole seconds, looked at after hours', 1_000, 7 * HOURS],
  ])('that drifts shows none: %s', async (_steps, step, pause) => {
    const { countSuspend, now } = await clockWith(step);
    const start = now() - monotonic;
    for (let looks = 0; looks < 30_000; looks++) {
      monotonic += pause;
      ahead += pause * 0.0002;
      countSuspend();
    }
    expect(now() - monotonic).toBe(start);
    ahead += 24 * HOURS;
    countSuspend();
    expect(now() - monotonic).toBeGreaterThanOrEqual(24 * HOURS);
  });

  it('shows none where a test lets time pass by a clock of its own, which then begins again', async () => {
    jest.spyOn(os, 'uptime').mockImplementation(() => machine.now() / 1000);
    const { countSuspend, now } = await freshClock();
    const suspended = (): number => now() - performance.now();
    jest.useFakeTimers();
    jest.advanceTimersByTime(24 * HOURS);
    countSuspend();
    jest.useRealTimers();
    jest.useFakeTimers();
    countSuspend();
    expect(suspended()).toBe(0);
    jest.useRealTimers();
  });

  it('that is set back hides no suspend after that', async () => {
    const { countSuspend, now } = await clockWith(10);
    const before = now();
    ahead -= 3_600_000;
    countSuspend();
    expect(now()).toBe(before);
    ahead += 5_000;
    countSuspend();
    expect(now() - before).toBeGreaterThanOrEqual(5_000);
  });
});

it('an alarm whose clock a test replaces rings by the new clock only, and clears no timer of the old one', () => {
  jest.useFakeTimers();
  const rings = jest.fn();
  const alarm = new Alarm(rings);
  alarm.setBy(now() + 1_000);
  const ringByTheOldClock = jest.spyOn(globalThis, 'setTimeout');
  alarm.setBy(now() + 500);
  const [[oldRing]] = ringByTheOldClock.mock.calls as [[() => void]];
  jest.useRealTimers();
  jest.useFakeTimers();
  const clears = jest.spyOn(globalThis, 'clearTimeout');
  alarm.setBy(now() + 100);
  expect(clears.mock.calls.flat().filter((timer) => timer !== undefined)).toEqual([]);
  oldRing();
  expect(rings).not.toHaveBeenCalled();
  jest.advanceTimersByTime(100);
  expect(rings).toHaveBeenCalledTimes(1);
  jest.useRealTimers();
});

describe('what outlives the call that happens to make it', () => {
  const chain = new AsyncLocalStorage<string>();

  /** As an app does that loads the package with its first request. */
  async function importedInside<T>(load: () => Promise<T>): Promise<T> {
    let loaded!: T;
    await chain.run('the call that imported the package', () => jest.isolateModulesAsync(async () => void (loaded = await load())));
    return loaded;
  }

  it('keeps nothing of that call, nor of the one that first imported the package', async () => {
    const copy = await importedInside(() => import('../../lib/core/util/clock.js'));
    const later = new AsyncLocalStorage<string>();
    const seen = await chain.run('the call that makes it', () =>
      later.run('by another storage', () => new Promise((resolve) => copy.after(1, () => resolve([chain.getStore(), later.getStore()])))),
    );
    expect(seen).toEqual([undefined, undefined]);
  });

  it('is no open handle for Jest, which counts resources', async () => {
    const made: number[] = [];
    const ended = new Set<number>();
    const hook = createHook({
      init: (id, type) => type === 'nestjs-distributed-lock' && made.push(id),
      destroy: (id) => ended.add(id),
    }).enable();
    await importedInside(() => import('../../lib/core/util/clock.js'));
    expect(made).toHaveLength(1);
    await eventually(() => ended.has(made[0]!));
    hook.disable();
  });

  it('is made at once, with its result or error, and the call goes on in its own context', async () => {
    const { detached } = await importedInside(() => import('../../lib/core/util/detached.js'));
    chain.run('the call', () => {
      expect(detached(() => [chain.getStore(), 'made'])).toEqual([undefined, 'made']);
      expect(() => detached(throwing(new Error('not made')))).toThrow('not made');
      expect(chain.getStore()).toBe('the call');
    });
  });

  it.each([
    ['a key', (locks: Locks, index: number) => locks.mutex(`key:${index}`)],
    ['several keys', (locks: Locks, index: number) => locks.multiLock([`key:${index}`, `other:${index}`])],
  ])('does not keep the released lease of %s under which it was made (G7)', async (_what, lockOf) => {
    const locks = new Locks(memoryStore(), { logger: false });
    const garbage = new GarbageCount();
    // They keep the context of the call, as a timer does.
    const made: AsyncResource[] = [];
    for (let index = 0; index < 200; index++) {
      await lockOf(locks, index).using((lease) => {
        garbage.add(lease);
        made.push(new AsyncResource('Made'));
      });
    }
    // Some of the last ones are still on the way.
    expect(await garbage.reachable()).toBeLessThan(20);
    expect(made).toHaveLength(200);
    await locks.close();
  });
});
