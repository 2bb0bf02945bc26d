import { afterTurns, passTime } from '../support/virtual-time.js';
import { Locks, StoreError, UnsupportedPrimitiveError, type Bus, type LockStore, type LocksOptions } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { closedAfter } from '../support/closed-after.js';
import { gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { firstTurnAfterStandingStill, pause } from '../support/time.js';

// A process reports many keys in several turns of the event loop.
afterTurns(2);

function open(store: LockStore = memoryStore(), options: LocksOptions = {}): Locks {
  return closedAfter(new Locks(store, { logger: false, shutdownTimeout: 0, ...options }));
}

/** A memory store with other answers. */
function storeWith(verbs: Partial<LockStore['mutex']>): LockStore {
  const store = memoryStore();
  return { ...store, mutex: Object.assign(Object.create(store.mutex) as LockStore['mutex'], verbs) };
}

/** Work under way, which ends when its signal aborts. */
async function stuckWork(locks: Locks): Promise<{ work: Promise<unknown> }> {
  const begun = gate();
  const body = ({ signal }: { signal: AbortSignal }) => (begun.open(), new Promise((end) => signal.addEventListener('abort', end)));
  const work = locks.using('key', body, { label: 'Work' });
  await begun.passed;
  return { work };
}

describe('the questions of an operator', () => {
  it('are refused by a typed error where the store has no inspection, which locks all the same', async () => {
    const locks = open({ ...memoryStore(), inspector: undefined, bus: undefined });
    for (const call of [
      () => locks.inspect('key'),
      () => locks.list()[Symbol.asyncIterator]().next(),
      () => locks.forceRelease('key', { reason: 'r' }),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(UnsupportedPrimitiveError);
    }
    expect(await locks.using('key', () => 'done')).toBe('done');
  });

  it('are answered for this process where the store has no bus, and a holder of this process can be asked for its key', async () => {
    const locks = open({ ...memoryStore(), bus: undefined });
    const { work } = await stuckWork(locks);
    expect((await locks.inspect('key')).holders).toMatchObject([{ report: { label: 'Work' } }]);
    expect(await locks.forceRelease('key', { reason: 'stuck' })).toMatchObject({ outcome: 'gave back' });
    await work;
  });
});

describe('the label that an operator sees', () => {
  it.each([true, false])('stays for as long as the minHold keeps the key, and no longer (a store with a bus: %s)', async (hasBus) => {
    const store = { ...memoryStore(), ...(!hasBus && { bus: undefined }) };
    const locks = open(store);
    const looks = hasBus ? open(store) : locks;
    await locks.using('tick', () => undefined, { label: 'Jobs.tick', minHold: 5_000 });
    const { holders } = await looks.inspect('tick');
    expect(holders).toMatchObject([{ phase: 'kept', report: { label: 'Jobs.tick', waiting: 0 } }]);
    expect(holders[0]!.since).toEqual(holders[0]!.report!.since);
    // The next holder of the key has its own.
    await passTime(5_000);
    const { queues } = (locks as unknown as { engine: { queues: { kept: Map<string, unknown> } } }).engine;
    expect(queues.kept.size).toBe(0);
    const lease = await locks.acquire('tick', { label: 'Jobs.other' });
    expect((await looks.inspect('tick')).holders).toMatchObject([{ phase: 'held', report: { label: 'Jobs.other' } }]);
    await lease.release();
    expect((await looks.inspect('tick')).kind).toBe('free');
  });

  it('of a leader and of its standbys is the name of the election', async () => {
    const store = memoryStore();
    const [locks, others] = [open(store), open(store)];
    const [first, second] = [locks, others].map((each) => each.leaderElection('billing'));
    const end = gate();
    const running = first!.run(() => end.passed);
    await eventually(() => first!.isLeader());
    const standing = second!.run(() => undefined);
    await eventually(async () => (await locks.inspect('billing-leader')).waiterCount === 1);
    const { holders, waiters } = await others.inspect('billing-leader');
    expect([holders[0]!.report?.label, waiters[0]!.report?.[0]?.label]).toEqual(['billing', 'billing']);
    end.open();
    await Promise.all([running, standing]);
  });
});

describe('forceRelease', () => {
  it('of a key that is held lets its lease be renewed until its work has ended', async () => {
    const store = memoryStore();
    const [locks, others] = [open(store), open(store)];
    const [begun, end] = [gate(), gate()];
    const work = locks.using('key', async () => (begun.open(), end.passed), { keyTimeout: 500 });
    await begun.passed;
    const reply = others.forceRelease('key', { reason: 'stuck', grace: 60_000 });
    let isOver = false;
    const next = others.using('key', () => isOver, { waitTimeout: Infinity });
    // Longer than its lease.
    await pause(1_200);
    isOver = true;
    end.open();
    await work;
    expect([await next, (await reply).outcome]).toEqual([true, 'gave back']);
  });

  it('asks again until the holder has received the request', async () => {
    const store = memoryStore();
    const real = store.bus!;
    let lost = 0;
    const publish: Bus['publish'] = (topic, text) => (topic === 'revoke' && lost++ < 2 ? Promise.resolve(1) : real.publish(topic, text));
    const bus = Object.assign(Object.create(real) as Bus, { publish });
    const [locks, others] = [open(store), open({ ...store, bus })];
    const { work } = await stuckWork(locks);
    expect(await others.forceRelease('key', { reason: 'stuck' })).toMatchObject({ outcome: 'gave back' });
    await work;
    expect(lost).toBeGreaterThan(2);
  });
});

describe('the health of locks', () => {
  it('counts leases and callers that wait, candidates of elections apart', async () => {
    const locks = open();
    const leases = await Promise.all(['a', 'b', 'name-leader'].map((key) => locks.acquire(key)));
    void locks
      .leaderElection('name')
      .run(() => undefined)
      .catch(() => undefined);
    const waits = [0, 500].map((delay) => pause(delay).then(() => locks.acquire('a', { waitTimeout: 60_000 })));
    await pause(2000);
    const { oldestWait, ...health } = await locks.health();
    expect(health).toMatchObject({ isUp: true, error: undefined, degraded: [], wakeUps: true, held: 3, waiting: 2 });
    expect(oldestWait).toBeGreaterThanOrEqual(1990);
    expect(oldestWait).toBeLessThan(2200);
    for (const lease of leases) await lease.release();
    for (const wait of waits) await (await wait).release();
    expect(await locks.health()).toMatchObject({ held: 0, waiting: 0, oldestWait: 0 });
  });

  it('is down when the store does not answer in time, or refuses', async () => {
    const silent = open(storeWith({ check: () => new Promise(() => undefined) }));
    const start = performance.now();
    expect(await silent.health(200)).toMatchObject({ isUp: false, roundTrip: undefined, error: { transient: true } });
    expect(performance.now() - start).toBeLessThan(250);
    const refusing = open(storeWith({ check: () => Promise.reject(new StoreError('NOPERM', { transient: false })) }));
    expect(await refusing.health()).toMatchObject({ isUp: false, error: { transient: false, message: 'NOPERM [LOCK_STORE]' } });
  });

  it('is degraded when a renewal has been unanswered for a third of its lease, and not before', async () => {
    const locks = open(storeWith({ renew: () => [Promise.reject(new StoreError('away', { transient: true }))] }));
    await locks.acquire('key', { keyTimeout: 3000 });
    await pause(1900);
    expect(await locks.health()).toMatchObject({ isUp: true, degraded: [] });
    await pause(250);
    expect(await locks.health()).toMatchObject({ degraded: ['a renewal is unanswered for more than a third of its lease'] });
  });

  it('is degraded after the event loop was blocked, but not by a lease that is not renewed', async () => {
    const locks = open();
    await locks.acquire('fixed', { keyTimeout: 3000, renew: false });
    await pause(2500);
    expect(await locks.health()).toMatchObject({ degraded: [] });
    await locks.acquire('key', { keyTimeout: 3000 });
    await pause(100);
    await firstTurnAfterStandingStill(1500);
    expect(await locks.health()).toMatchObject({ degraded: ['the event loop was blocked within the last minute'] });
  });
});

it.each([
  ['*', ['a', 'a.b', 'ab', 'abab', 'b*', 'b?']],
  ['a', ['a']],
  ['a*b', ['a.b', 'ab', 'abab']],
  ['*a*b*', ['a.b', 'ab', 'abab']],
  ['**ab', ['ab', 'abab']],
  ['?b', ['ab']],
  ['a??*', ['a.b', 'abab']],
  ['b?', ['b*', 'b?']],
  ['[ab]', []],
  ['b', []],
  ['ab*ab*ab', []],
])('the pattern %s finds the keys that have it, in the namespace', async (pattern, expected) => {
  const store = memoryStore();
  const locks = open(store, { namespace: 'n*' });
  for (const key of ['a', 'ab', 'a.b', 'abab', 'b*', 'b?']) await locks.acquire(key);
  await open(store, { namespace: 'nn' }).acquire('ab');
  const found: string[] = [];
  for await (const { key } of locks.list({ pattern })) found.push(key.slice(locks.mutex('-').key.length - 1));
  expect(found.sort()).toEqual(expected);
});

it('a pattern of many stars does not stop the process', async () => {
  const locks = open();
  await locks.acquire('0'.repeat(200));
  for await (const { key } of locks.list({ pattern: `${'*0'.repeat(12)}*x*` })) throw new Error(`It has found ${key}.`);
});

it('a list of sixteen times as many keys costs about sixteen times as much', async () => {
  const costOf = async (count: number): Promise<number> => {
    const locks = open();
    for (let index = 0; index < count; index++) await locks.acquire(`key-${index}`, { label: 'Work' });
    const costs: number[] = [];
    for (let round = 0; round < 3; round++) {
      const before = process.cpuUsage();
      let found = 0;
      for await (const { holders } of locks.list({ limit: count })) found += Number(holders[0]?.report?.label === 'Work');
      const { user, system } = process.cpuUsage(before);
      costs.push(user + system);
      expect(found).toBe(count);
    }
    return Math.min(...costs);
  };
  await costOf(1_000);
  // If each key were looked for among the answers for all keys, it would be 75 times as much.
  expect((await costOf(16_000)) / (await costOf(1_000))).toBeLessThan(36);
});

it('a process reports many keys in parts, between which other work goes on', async () => {
  const store = memoryStore();
  const [operator, holder] = [open(store), open(store)];
  for (let index = 0; index < 2_000; index++) await holder.acquire(`key-${index}`, { label: 'Work' });
  let turn = 0;
  const turns = new Set<number>();
  const bus = store.bus!;
  const publish = bus.publish.bind(bus);
  jest.spyOn(bus, 'publish').mockImplementation((topic, text) => {
    if (topic === 'ops:told') turns.add(turn);
    return publish(topic, text);
  });
  let isOver = false;
  const count = (): void => void (isOver || setImmediate(() => (turn++, count())));
  count();
  let found = 0;
  for await (const { holders } of operator.list({ limit: 2_000 })) found += Number(holders[0]?.report?.label === 'Work');
  isOver = true;
  expect(found).toBe(2_000);
  expect(turns.size).toBeGreaterThanOrEqual(4);
});
