// What the dashboard says of stores and processes, with no page: each pair of looks has some time between.
import '../support/virtual-time.js';
import { Locks, StoreError, type LockStore, type LocksOptions } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { recordStore } from 'nestjs-distributed-lock/records';
import { Dashboard } from '../../lib/dashboard/dashboard.js';
import type { Note, PageState } from '../../lib/dashboard/dashboard.protocol.js';
import { gate } from '../support/gate.js';
import { MapTable } from '../support/map-table.js';
import { afterTurns, mayTake, passTime } from '../support/virtual-time.js';

afterTurns(4);
mayTake(700_000);
const ME = { by: 'anna', mayRelease: true };
const opened: Locks[] = [];
afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));

function open(store: LockStore, options: LocksOptions = {}): Locks {
  const locks = new Locks(store, { logger: false, shutdownTimeout: 0, ...options });
  opened.push(locks);
  return locks;
}

/** A dashboard over a memory store, with an app beside it, either of which can lose the store or its messages. */
function setting() {
  const memory = memoryStore();
  const store = (faults: { isAway: boolean; isDeaf: boolean; isStuck: boolean }): LockStore => {
    const failing = <T extends object>(of: T): T =>
      new Proxy(of, {
        get: (target, name) => {
          const value = Reflect.get(target, name) as unknown;
          if (typeof value !== 'function') return value;
          return (...args: unknown[]): unknown => {
            if (faults.isAway) throw new StoreError('connect ECONNREFUSED', { key: '-', transient: true });
            if (faults.isStuck) return new Promise(() => undefined);
            return (value as (...given: unknown[]) => unknown).apply(target, args);
          };
        },
      });
    const bus = memory.bus!;
    return {
      ...memory,
      mutex: failing(memory.mutex),
      inspector: failing(memory.inspector!),
      bus: {
        ...{ connection: bus.connection, open: () => bus.open(() => undefined) },
        publish: (topic, text) => (faults.isDeaf ? Promise.resolve(1) : bus.publish(topic, text)),
        listen: (topic, hear) => bus.listen(topic, (text) => (faults.isDeaf ? undefined : hear(text))),
      },
    };
  };
  const [appFaults, faults] = [0, 1].map(() => ({ isAway: false, isDeaf: false, isStuck: false })) as [Faults, Faults];
  const app = open(store(appFaults), { app: 'shop' });
  const locks = open(store(faults), { app: 'dashboard' });
  const dashboard = new Dashboard(new Map([['default', locks]]));
  const look = (query = ''): Promise<PageState> => dashboard.state('', query, ME);
  /** The state in some seconds. */
  const later = async (seconds: number): Promise<PageState> => (await passTime(seconds * 1_000), look());
  return { memory, app, appFaults, locks, faults, dashboard, look, later };
}
type Faults = Record<'isAway' | 'isDeaf' | 'isStuck', boolean>;

const events = ({ notes }: PageState, ...wanted: Note['event'][]) => notes.filter(({ event }) => wanted.includes(event));

describe('what happened', () => {
  it('while nobody looked, or the process of the page stood still, is an event and a number, as for who looked', async () => {
    const { app, look, later } = setting();
    await look();
    const holder = await app.acquire('order:42', { label: 'Orders.pay' });
    for (let i = 0; i < 30; i++) await app.acquire('order:42', { waitTimeout: 1, label: 'Orders.list' }).catch(() => undefined);
    const state = await later(12);
    expect(events(state, 'timeout')).toMatchObject([{ key: 'order:42', label: 'Orders.list', count: 30 }]);
    expect(state.numbers.timeouts).toBe(30);
    await holder.release();
    // It has been told once.
    expect((await later(3)).numbers.timeouts).toBe(30);
    expect((await later(400)).numbers.timeouts).toBe(0);
  });

  it('in an outage and a pause is known afterwards, and the outage with its length', async () => {
    const { app, appFaults, faults, look, later } = setting();
    const lease = await app.acquire('order:42', { label: 'Orders.pay', keyTimeout: 6_000 });
    const before = await look();
    [appFaults.isAway, faults.isAway] = [true, true];
    const away = await later(3);
    expect(away).toMatchObject({ stores: [{ isAway: true, at: before.stores[0]!.at }], rows: before.rows, processes: { known: 0 } });
    expect(away.alarms).toMatchObject([{ kind: 'outage', text: expect.stringContaining('default does not answer') as string }]);
    await later(12);
    expect(lease.signal.aborted).toBe(true);
    [appFaults.isAway, faults.isAway] = [false, false];
    const after = await later(3);
    expect(after).toMatchObject({ stores: [{ isAway: false }], rows: [], numbers: { lost: 1 } });
    expect(events(after, 'lost', 'outage')).toMatchObject([
      { event: 'outage', key: '', lasted: expect.any(Number) as number },
      { event: 'lost', key: 'order:42' },
    ]);
    const [outage] = events(after, 'outage');
    expect(Math.round(outage!.lasted! / 1_000)).toBe(15);
  });

  it('to an owner that goes without an end, of a process that does not answer, is that its lease ran out', async () => {
    const { app, appFaults, look, later } = setting();
    await app.acquire('import', { label: 'Import.run', keyTimeout: 6_000 });
    expect((await look()).rows).toMatchObject([{ holder: { label: 'Import.run', isSilent: false } }]);
    [appFaults.isStuck, appFaults.isDeaf] = [true, true];
    const silent = await later(2.5);
    expect(silent).toMatchObject({ rows: [{ holder: { label: 'Import.run', isSilent: true } }], processes: { known: 1 } });
    const after = await later(6);
    expect(after).toMatchObject({ rows: [], numbers: { lost: 1 }, alarms: [{ kind: 'lost' }] });
    expect(events(after, 'ran out')).toMatchObject([
      {
        key: 'import',
        label: 'Import.run',
        process: expect.stringMatching(/^shop@/) as string,
        reason: expect.stringMatching(/^silent for [89]/) as string,
      },
    ]);
    // It goes on, and tells its loss: that is the same one.
    [appFaults.isStuck, appFaults.isDeaf] = [false, false];
    const told = await later(3);
    expect([events(told, 'ran out', 'lost').map(({ event }) => event), told.numbers.lost]).toEqual([['lost'], 1]);
  });

  it('to a key that is released by a process that ends is nothing', async () => {
    const { app, look, later } = setting();
    const lease = await app.acquire('import', { keyTimeout: 6_000 });
    await look();
    await lease.release();
    await app.close();
    expect((await later(10)).notes).toEqual([]);
  });

  it('is no fault if an operator did it: one line for each key, which pushes nothing out', async () => {
    const { app, locks, look, later } = setting();
    await app.acquire('order:1', { waitTimeout: 1 });
    await app.acquire('order:1', { waitTimeout: 1 }).catch(() => undefined);
    for (let i = 0; i < 100; i++) {
      await app.acquire(`key-${i}`, { label: 'Jobs.run' });
      await locks.forceRelease(`key-${i}`, { reason: 'it hangs', by: 'anna', grace: 0 });
    }
    await look();
    const state = await later(3);
    expect(state).toMatchObject({ numbers: { lost: 0, timeouts: 1 }, alarms: [] });
    const forced = events(state, 'forced');
    expect(new Set(forced.map(({ key }) => key)).size).toBe(forced.length);
    expect(forced[0]).toMatchObject({ label: 'Jobs.run', by: 'anna', reason: 'it hangs', count: 1 });
    expect(events(state, 'lost', 'timeout')).toMatchObject([{ event: 'timeout', key: 'order:1' }]);
  });

  it('to a tick that another replica ran is that it was skipped', async () => {
    const { app, look } = setting();
    await app.using('tick', () => undefined, { label: 'Jobs.tick', minHold: 60_000 });
    await app.using('tick', () => undefined, { label: 'Jobs.tick', waitTimeout: 0, onTimeout: 'skip' });
    const state = await look();
    expect(events(state, 'skipped', 'timeout')).toMatchObject([{ event: 'skipped', key: 'tick', label: 'Jobs.tick' }]);
    expect(state.rows).toMatchObject([{ key: 'tick', holder: { phase: 'kept' }, waiters: 0 }]);
  });
});

describe('what is so', () => {
  it('is an alarm when the first waiter has waited for a minute, whether or not the holder answers', async () => {
    const { memory, app, appFaults, look, later } = setting();
    await app.acquire('import', { label: 'Jobs.importAll', keyTimeout: 3_600_000 });
    const waiters = open(memory, { app: 'catalog' });
    const calls = Array.from({ length: 50 }, () => waiters.acquire('import', { waitTimeout: Infinity }).catch(() => undefined));
    expect((await look()).alarms).toEqual([]);
    const state = await later(61);
    const text = /^import: 50 wait, the first for 61 s; Jobs\.importAll of shop@.* holds it for 61 s and answers$/;
    expect(state.alarms).toMatchObject([{ kind: 'wait', text: expect.stringMatching(text) as string, row: { key: 'import' } }]);
    expect(state.numbers).toMatchObject({ waiting: 50, longestWait: expect.any(Number) as number });
    appFaults.isDeaf = true;
    expect((await later(3)).alarms[0]!.text).toMatch(/and does not answer$/);
    await waiters.close();
    await Promise.all(calls);
  });

  it('is an alarm when two callers wait for each other', async () => {
    const { app, look, later } = setting();
    const end = new AbortController();
    const both = ['a', 'b'].map((key, index, keys) =>
      app.using(key, async () => {
        await passTime(100);
        await app.acquire(keys[1 - index]!, { waitTimeout: Infinity, signal: end.signal });
      }),
    );
    const ended = Promise.allSettled(both);
    await passTime(1_000);
    await look();
    const text = expect.stringMatching(/^Deadlock: shop@.* holds a and waits for b/) as string;
    expect((await later(3)).alarms).toMatchObject([{ kind: 'deadlock', text }]);
    end.abort();
    await ended;
  });

  it('is the advice of the doctor, where it limits what the store is fit for', async () => {
    const dashboard = new Dashboard(new Map([['own', open(recordStore(new MapTable()))]]));
    await dashboard.state('', '', ME);
    await passTime(3_000);
    expect((await dashboard.state('', '', ME)).advice).toEqual([expect.stringMatching(/^own: what a crash can lose: /)]);
  });

  it('is not asked of the store for a page alone, nor while nobody looks', async () => {
    const { app, locks, look, later } = setting();
    await app.acquire('order:42');
    const operator = await locks.operator();
    const list = jest.spyOn(operator, 'list');
    const pages = await Promise.all(Array.from({ length: 10 }, () => look()));
    expect(new Set(pages.map((state) => JSON.stringify({ ...state, now: 0 }))).size).toBe(1);
    await later(1);
    expect(list).toHaveBeenCalledTimes(1);
    await later(600);
    expect(list).toHaveBeenCalledTimes(2);
  });

  it('is asked less often of a store that takes long: a twentieth of the time', async () => {
    const { locks, look, later } = setting();
    const operator = await locks.operator();
    const list = jest.spyOn(operator, 'list').mockImplementation(async function* () {
      await passTime(600);
      yield* [];
    });
    await look();
    await later(11);
    expect(list).toHaveBeenCalledTimes(1);
    await later(2);
    expect(list).toHaveBeenCalledTimes(2);
  });

  it('is asked again of a row whose lease should be over', async () => {
    const { app, appFaults, locks, look, later } = setting();
    await app.acquire('import', { label: 'Import.run', keyTimeout: 4_000 });
    const operator = await locks.operator();
    await look();
    [appFaults.isStuck, appFaults.isDeaf] = [true, true];
    // A listing costs so much that the next one is far off.
    const list = jest.spyOn(operator, 'list').mockImplementation(async function* () {
      await passTime(10_000);
      yield* [];
    });
    await later(3);
    list.mockClear();
    expect((await later(3)).rows).toEqual([]);
    expect(list).not.toHaveBeenCalled();
  });

  it('has no keys of the library itself', async () => {
    const { app, look } = setting();
    const end = gate();
    await app.acquire('nestjs-distributed-lock:doctor:1');
    const work = app.using('order:42', () => end.passed);
    expect((await look()).rows.map(({ key }) => key)).toEqual(['order:42']);
    end.open();
    await work;
  });

  it('counts callers once, in the row and in the answer for the key, where equal ones are one line', async () => {
    const { app, dashboard, look } = setting();
    const semaphore = app.semaphore('gpu', { permits: 3 });
    for (let i = 0; i < 3; i++) await semaphore.acquire({ label: 'Model.train' });
    const other = open(app.store, { app: 'batch' });
    const calls = Array.from({ length: 20 }, () =>
      other
        .semaphore('gpu', { permits: 3 })
        .acquire({ label: 'Model.test', waitTimeout: Infinity })
        .catch(() => undefined),
    );
    const { rows, numbers } = await look();
    expect([rows[0], numbers.waiting]).toMatchObject([{ kind: 'semaphore', permits: 3, holders: 3, waiters: 20 }, 20]);
    const answer = await dashboard.key('default', 'gpu');
    expect(answer).toMatchObject({ waiterCount: 20, waiters: [{ label: 'Model.test', count: 20, isSilent: false }] });
    await other.close();
    await Promise.all(calls);
  });
});
