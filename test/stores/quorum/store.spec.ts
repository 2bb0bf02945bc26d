import { afterTurns, mayTake, passTime } from '../../support/virtual-time.js';
import type { LeaseDriver, LockStore } from 'nestjs-distributed-lock/core';
import { LockConfigError, Locks, QuorumError, StoreError, UnsupportedPrimitiveError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { rejection } from '../../support/rejection.js';
import { recordStore } from '../../../lib/stores/records/record.store.js';
import type { LeaseRecord } from '../../../lib/stores/records/record.work.js';
import { MapData, MapTable } from '../../support/map-table.js';
import { altered, nextTurn, request, three } from './members.js';

// A test that goes on by turns lets no time pass.
afterTurns(10);
mayTake(60_000);

describe('quorumStore refuses', () => {
  const same = memoryStore();
  it.each([
    ['no list', undefined, /list of stores/],
    ['two members', [memoryStore(), memoryStore()], /three members/],
    ['what is no store', [memoryStore(), {} as LockStore, memoryStore()], /member 2 is not a store/],
    ['one store twice', [same, memoryStore(), same], /member 3 is member 1 again/],
  ])('%s', (_what, members, message) => {
    expect(() => quorumStore(members as LockStore[])).toThrow(LockConfigError);
    expect(() => quorumStore(members as LockStore[])).toThrow(message);
  });

  it.each([{ memberTimeout: 0 }, { memberTimeout: 2_501 }, { quarantine: -1 }, { quarantine: Infinity }, { quorum: 2 }])(
    'the options %j',
    (options) => {
      expect(() => quorumStore(three(), options as object)).toThrow(LockConfigError);
    },
  );

  it('a lease that is longer than the quarantine, at the acquire and at a renewal, where a member may forget', async () => {
    const { mutex } = quorumStore(three(), { quarantine: 10_000 });
    expect(await rejection(mutex.acquire({ ...request, ttl: 10_001 }))).toBeInstanceOf(LockConfigError);
    expect(await rejection(mutex.renew([{ key: 'key', owner: 'a', ttl: 10_001 }])[0]!)).toBeInstanceOf(LockConfigError);
    const durable = three().map((store) => ({ ...store, remembers: undefined }));
    expect(await quorumStore(durable, { quarantine: 10_000 }).mutex.acquire({ ...request, ttl: 60_000 })).toMatchObject({ granted: true });
  });

  it('semaphores and latches, and has the rest', () => {
    const locks = new Locks(quorumStore(three()), { logger: false });
    expect(() => locks.semaphore('key', { permits: 2 })).toThrow(UnsupportedPrimitiveError);
    expect(() => locks.countDownLatch('key')).toThrow(UnsupportedPrimitiveError);
    for (const feature of ['mutex', 'readWriteLock', 'multiLock', 'leaderElection', 'wakeUps'] as const)
      expect(locks.store.supports(feature)).toBe(true);
  });
});

it('an even number of members is warned about, in the log of the first Locks', async () => {
  const logger = { warn: jest.fn(), error: jest.fn() };
  const locks = new Locks(quorumStore([...three(), memoryStore()]), { logger });
  expect(logger.warn.mock.calls).toEqual([[expect.stringContaining('4 members survive the loss of as many as 3 do')]]);
  await locks.close();
});

describe('while members are changed', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'] as const;
  /** Whether somebody gets the key from a majority of `others`, for any majority of `some` that has granted it. */
  async function isGrantedTwice(some: readonly string[], others: readonly string[]): Promise<boolean> {
    const majority = Math.floor(some.length / 2) + 1;
    const groups = some.flatMap((first, i) => some.slice(i + 1).flatMap((second, j) => (majority === 2 ? [[first, second]] : some.slice(i + j + 2).map((third) => [first, second, third])))); // prettier-ignore
    for (const group of groups) {
      const stores = new Map([a, b, c, d].map((name) => [name as string, memoryStore()]));
      for (const name of group) expect(await stores.get(name)!.mutex.acquire(request)).toMatchObject({ granted: true });
      const { mutex } = quorumStore(
        others.map((name) => stores.get(name)!),
        { quarantine: 0 },
      );
      if ((await mutex.acquire({ ...request, owner: 'other' })).granted) return true;
    }
    return false;
  }

  it.each([
    [[a, b, c], [a, b, c, d]],
    [[a, b, c, d], [a, b, c]],
    [[a, b, c, d], [a, b, d]],
    [[a, b, d], [a, b, c, d]],
  ])('%j and %j exclude each other', async (some, others) => expect(await isGrantedTwice(some, others)).toBe(false)); // prettier-ignore

  it('lists in which one is replaced do not', async () => expect(await isGrantedTwice([a, b, c], [a, b, d])).toBe(true));
});

it('nobody gets a lock from members that are young, and their votes are released', async () => {
  const members = three();
  const { mutex } = quorumStore(members);
  const error = (await rejection(mutex.acquire(request))) as QuorumError;
  expect(error).toBeInstanceOf(QuorumError);
  // Two are enough to know it.
  const young = [1, 2].map((n) => expect.stringContaining(`member ${n} (memory) does not vote yet`) as string);
  expect(error.votes.map(String)).toEqual([
    ...young,
    expect.stringMatching(/Member 3 had not answered|member 3 \(memory\) does not vote yet/),
  ]);
  await nextTurn();
  for (const member of members) expect((await member.mutex.check(request)).state).toBe('free');
});

describe('an operator of a quorum', () => {
  const opened: Locks[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));
  function open(store: LockStore): Locks {
    opened.push(new Locks(store, { logger: false }));
    return opened.at(-1)!;
  }

  it('learns that it is not healthy, though its members answer, when they do not vote yet', async () => {
    const locks = open(quorumStore(three()));
    expect(await rejection(locks.acquire('key', { waitTimeout: 0 }))).toBeInstanceOf(QuorumError);
    const { isUp, error } = await locks.health();
    expect([isUp, String(error)]).toEqual([false, expect.stringContaining('does not vote yet')]);
  });

  it('asks each member by itself, and a key is free when a majority of them has taken it away', async () => {
    const members = three();
    const locks = open(quorumStore(members, { quarantine: 0 }));
    const lease = await locks.acquire('key');
    const reason = 'stuck';
    for (const asked of [locks.inspect('key'), locks.forceRelease('key', { reason }), locks.list()[Symbol.asyncIterator]().next()])
      expect(await rejection(asked)).toBeInstanceOf(UnsupportedPrimitiveError);
    expect(locks.store.supports('inspect')).toBe(false);
    const [first, ...others] = members.map(open) as [Locks, Locks, Locks];
    expect((await first.inspect('key')).holders).toMatchObject([{ owner: lease.owner }]);
    for (const other of others) expect(await other.forceRelease('key', { reason, grace: 0 })).toMatchObject({ outcome: 'forced' });
    const next = await open(quorumStore(members, { quarantine: 0 })).acquire('key', { waitTimeout: 0 });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken!);
  });

  it('tries a lock with the doctor, who knows nothing of what the members keep', async () => {
    const { checks, verdict } = await open(quorumStore(three(), { quarantine: 0 })).doctor({ probe: 100 });
    const states = checks.map(({ id, state }) => [id, state]);
    expect(states).toEqual(expect.arrayContaining([['durability', 'unknown'], ['probe', 'ok']])); // prettier-ignore
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
  });
});

it('a token counts only when a majority has recorded it, whatever the clocks of the members', async () => {
  const clocks = [80_000_000, 40_000_000, -40_000_000];
  const last = [0, 0, 0];
  let away = 0;
  const broken = new StoreError('away', { transient: true, isUnsent: true });
  const members = three().map((store, index) =>
    altered(store, (real) => ({
      acquire: async (asked) => {
        if (away === index) throw broken;
        const reply = await real.acquire(asked);
        if (!reply.granted) return reply;
        const token = Math.max(asked.floor ?? 0, last[index]! + 1, Date.now() * 1000 + clocks[index]!);
        last[index] = token + asked.tokens - 1;
        return { granted: true, token };
      },
    })),
  );
  let before = 0;
  for (let round = 0; round < 30; round++) {
    away = round % 3;
    // Each is an app of its own, which knows of no clock yet.
    const { mutex } = quorumStore(members, { quarantine: 0 });
    const reply = await mutex.acquire({ ...request, owner: `owner ${round}` });
    const { token } = reply as { token: number };
    expect(token).toBeGreaterThan(before);
    expect(last.filter((each) => each >= token).length).toBeGreaterThanOrEqual(2);
    before = token;
    await mutex.release({ key: 'key', owner: `owner ${round}`, keepFor: 0 });
  }
});

it('a member to which the request is lost that would record the larger token of the others is asked again', async () => {
  const ahead = [1_000, 2_000, 5_000];
  const stores = three();
  let sent = 0;
  const members = stores.map((store, index) =>
    altered(store, (real) => ({
      acquire: (asked) => {
        if (index === 0 && ++sent === 2) return Promise.reject(new StoreError('away', { transient: true }));
        return real.acquire({ ...asked, floor: asked.floor! + ahead[index]! });
      },
    })),
  );
  const { mutex } = quorumStore(members, { quarantine: 0 });
  const { token } = (await mutex.acquire(request)) as { token: number };
  await nextTurn();
  const recorded = async () => (await stores[0].inspector!.inspect(['key']))[0]!.fencingToken;
  expect(sent).toBe(2);
  expect(await recorded()).toBeLessThan(token);
  await mutex.check({ key: 'other', owner: 'b' });
  await nextTurn();
  expect(await recorded()).toBeGreaterThanOrEqual(token);
});

it('a member that is slow is waited for by nobody: neither a grant, nor a renewal, a refusal or a release', async () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  const [a, b, c] = three();
  const slow = altered(c, () => ({ acquire: never, renew: (batch) => batch.map(never), release: never }));
  const { mutex } = quorumStore([a, b, slow], { quarantine: 0, memberTimeout: 2_500 });
  const start = performance.now();
  expect(await mutex.acquire(request)).toMatchObject({ granted: true });
  expect(await mutex.renew([request])[0]).toBe('renewed');
  expect(await mutex.acquire({ ...request, owner: 'b' })).toMatchObject({ granted: false, holder: 'a' });
  expect(await mutex.release({ key: 'key', owner: 'a', keepFor: 0 })).toBe('released');
  expect(performance.now()).toBe(start);
});

describe('a member that grants the key and whose answer is lost', () => {
  const lease = { key: 'key', owner: 'a', ttl: 10_000 };
  const away = new StoreError('away', { transient: true });
  const silent = new Set<number>();
  const lost = new Set<number>();
  let mutex: LeaseDriver;
  beforeEach(async () => {
    silent.clear();
    lost.add(2);
    const members = three().map((store, index) =>
      altered(store, (real) => ({
        acquire: async (asked) => {
          const reply = await real.acquire(asked);
          if (lost.has(index)) throw away;
          return reply;
        },
        renew: (batch) => (silent.has(index) ? batch.map(() => Promise.reject(away)) : real.renew(batch)),
      })),
    );
    ({ mutex } = quorumStore(members, { quarantine: 0 }));
  });

  it('does not count in a renewal: nobody knows whether the owner has to leave its queue (G2)', async () => {
    silent.add(1);
    expect(await mutex.acquire({ ...request, queue: true })).toMatchObject({ granted: true });
    expect(await rejection(mutex.renew([lease])[0]!)).toBeInstanceOf(QuorumError);
  });

  it('counts when it was asked again', async () => {
    expect(await mutex.acquire({ ...request, queue: true })).toMatchObject({ granted: true });
    lost.clear();
    await mutex.check({ key: 'key', owner: 'b' });
    await nextTurn();
    silent.add(1);
    expect(await mutex.renew([lease])[0]).toBe('renewed');
  });
});

it('a member learns of a release when it is back, however many leases it has had no request for (G7)', async () => {
  const [a, b, c] = three();
  let isAway = false;
  const away = new StoreError('away', { transient: true, isUnsent: true });
  const unlessAway = <T>(work: () => Promise<T>): Promise<T> => (isAway ? Promise.reject(away) : work());
  const last = altered(c, (real) => ({
    acquire: (asked) => unlessAway(() => real.acquire(asked)),
    release: (asked) => unlessAway(() => real.release(asked)),
    check: (asked) => unlessAway(() => real.check(asked)),
  }));
  const { mutex } = quorumStore([a, b, last], { quarantine: 0 });
  expect(await mutex.acquire(request)).toMatchObject({ granted: true });
  await nextTurn();
  isAway = true;
  for (let each = 0; each < 1_100; each++) {
    const tenancy = { key: `key ${each}`, owner: `owner ${each}` };
    expect(await mutex.acquire({ ...request, ...tenancy })).toMatchObject({ granted: true });
    if (each === 0) expect(await mutex.release({ key: 'key', owner: 'a', keepFor: 0 })).toBe('released');
    expect(await mutex.release({ ...tenancy, keepFor: 0 })).toBe('released');
  }
  expect((await c.mutex.check(request)).state).toBe('held');
  isAway = false;
  await mutex.check(request);
  await nextTurn();
  expect((await c.mutex.check(request)).state).toBe('free');
});

it('a member that refuses to release what it has granted is sent it again, once a second at most, until it does', async () => {
  const [a, b, c] = three();
  const failures = [new StoreError('no', { transient: false }), new LockConfigError('no'), new TypeError('no')];
  let tries = 0;
  const last = altered(c, (real) => ({
    release: (asked) => (tries++ < failures.length ? Promise.reject(failures[tries - 1]!) : real.release(asked)),
  }));
  const { mutex } = quorumStore([a, b, last], { quarantine: 0 });
  await mutex.acquire({ ...request, ttl: 60_000 });
  expect(await mutex.release({ key: 'key', owner: 'a', keepFor: 0 })).toBe('released');
  for (let time = 0; time < 60; time++) {
    await passTime(25);
    await mutex.check({ key: 'other', owner: 'b' });
  }
  expect(tries).toBe(3);
  await passTime(2_000);
  expect((await c.mutex.check(request)).state).toBe('free');
  expect(tries).toBe(4);
});

/** One process at three members that others share. */
const storeAt = (data: readonly MapData[]): LockStore =>
  quorumStore(
    data.map((each) => recordStore(new MapTable(each))),
    { quarantine: 0 },
  );

it('a waiter is woken by the offers of a majority, though another member is slow', async () => {
  const data = [new MapData(), new MapData(), new MapData()];
  const [a, b, c] = data.map((each) => recordStore(new MapTable(each))) as [LockStore, LockStore, LockStore];
  const slow = altered(c, () => ({ acquire: () => new Promise(() => undefined) }));
  const stores = [storeAt(data), quorumStore([a, b, slow], { quarantine: 0 })];
  const [holder, waiter] = stores.map((store) => new Locks(store, { logger: false })) as [Locks, Locks];
  const lease = await holder.acquire('key', { keyTimeout: 60_000 });
  const waiting = waiter.acquire('key', { waitTimeout: 60_000, retryInterval: 60_000 });
  await passTime(3_500); // between two polls, which are a second apart
  const start = performance.now();
  expect(await lease.release()).toBe(true);
  await (await waiting).release();
  expect(performance.now() - start).toBeLessThan(100);
  await Promise.all([holder, waiter].map((locks) => locks.close()));
});

it('the callers of many processes lose no update; one at a time queues at the members, which would offer the key to different ones', async () => {
  const data = [new MapData(), new MapData(), new MapData()];
  const processes = Array.from({ length: 9 }, () => new Locks(storeAt(data), { logger: false }));
  let [counter, longest] = [0, 0];
  const section = async (): Promise<void> => {
    const seen = counter;
    await passTime(100); // in which the next one queues
    counter = seen + 1;
    for (const { rows } of data) {
      const { queue } = JSON.parse(rows.get('key')!.record!) as LeaseRecord;
      longest = Math.max(longest, queue.length);
    }
  };
  const call = async (locks: Locks): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await locks.using('key', section, { waitTimeout: Infinity });
  };
  await Promise.all(processes.map(call));
  expect([counter, longest]).toEqual([45, 1]);
  await Promise.all(processes.map((locks) => locks.close()));
});

it('a waiter that dies when it has the queue lock holds the others up for seconds', async () => {
  const data = [new MapData(), new MapData(), new MapData()];
  const [holder, dead] = [storeAt(data).mutex, storeAt(data).mutex];
  const wait = { ...request, owner: 'dead', queue: true };
  await holder.acquire(request);
  for (let asked = 0; asked < 2; asked++) expect(await dead.acquire(wait)).toMatchObject({ granted: false });
  await holder.release({ key: 'key', owner: 'a', keepFor: 0 });
  const [locks, others] = [storeAt(data), storeAt(data)].map((store) => new Locks(store, { logger: false }));
  const start = performance.now();
  const first = locks!.acquire('key', { waitTimeout: 60_000, fair: true });
  const second = others!.acquire('key', { waitTimeout: 60_000, fair: true });
  await (await first).release();
  await (await second).release();
  expect(performance.now() - start).toBeLessThan(5_000);
  await Promise.all([locks!.close(), others!.close()]);
});

it('closing warns of no member that refuses what is sent to it again', async () => {
  const warn = jest.fn();
  const [a, b, c] = three();
  let refuse: ((error: StoreError) => void) | undefined;
  const last = altered(c, () => ({
    release: () => {
      if (refuse) return new Promise((_, reject) => (refuse = reject));
      refuse = () => undefined;
      return Promise.reject(new StoreError('away', { transient: true }));
    },
  }));
  const store = quorumStore([a, b, last], { quarantine: 0, memberTimeout: 20 });
  store.onWarning!(warn);
  await store.mutex.acquire(request);
  await store.mutex.release({ key: 'key', owner: 'a', keepFor: 0 });
  await store.mutex.check(request);
  await store.close();
  refuse!(new StoreError('The client is closed.', { transient: false }));
  await nextTurn();
  expect(warn).not.toHaveBeenCalled();
});

it.each([[[0, 2, 1, 0, 1, 2]], [[0, 1, 0, 2, 1, 0]], [[2, 0, 1, 1, 0, 2]]])(
  'an acquire ends after two questions to each member, whatever the order of the answers: %j',
  async (order) => {
    let asked = 0;
    const answers: (() => void)[][] = [[], [], []];
    // Their clocks go on by a second for each request.
    const members = three().map((store, index) =>
      altered(store, (real) => ({
        acquire: (wanted) => {
          const token = (wanted.floor ?? 0) + 1_000_000 * ++asked;
          return new Promise((resolve) => answers[index]!.push(() => void real.acquire({ ...wanted, floor: token }).then(resolve)));
        },
      })),
    );
    const { mutex } = quorumStore(members, { quarantine: 0, memberTimeout: 2000 });
    const reply = mutex.acquire(request);
    let hasReply = false;
    void reply.then(() => (hasReply = true));
    for (let turn = 0; turn < 60; turn++) {
      await nextTurn();
      answers[order[turn % order.length]!]!.shift()?.();
    }
    expect(hasReply).toBe(true);
    expect(await reply).toMatchObject({ granted: true });
    expect(asked).toBeLessThanOrEqual(6);
  },
);

it('tokens are not asked for farther and farther ahead: what a slow request added passes', async () => {
  const floors: number[] = [];
  let late = 0;
  const members = three().map((store) =>
    altered(store, (real) => ({
      acquire: (asked) => {
        floors.push(asked.floor!);
        const floor = asked.floor! + late;
        late = 0;
        return real.acquire({ ...asked, floor });
      },
    })),
  );
  const { mutex } = quorumStore(members, { quarantine: 0 });
  let count = 0;
  /** Microseconds by which the least token that is asked for is ahead of the clock. */
  const lead = async (): Promise<number> => {
    floors.length = 0;
    await passTime(1);
    const tenancy = { key: `key ${++count}`, owner: 'a' };
    expect(await mutex.acquire({ ...request, ...tenancy })).toMatchObject({ granted: true });
    await mutex.release({ ...tenancy, keepFor: 0 });
    return Math.min(...floors) - Date.now() * 1000;
  };
  const first = await lead();
  for (let time = 0; time < 3; time++) {
    late = 20_000;
    await lead();
    expect(await lead()).toBe(first + 20_000);
    for (let passed = 0; passed < 2_000; passed++) await lead();
    expect(await lead()).toBe(first);
  }
});

it('a late vote that is doubted for long takes no later vote of its owner with it', async () => {
  const members = three();
  const [one, ...others] = members;
  // The first answers of this member.
  let [answer, trust] = [(): void => undefined, (): void => undefined];
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const trusted = new Promise<void>((resolve) => (trust = resolve));
  const late = altered(one, (real) => ({ acquire: (asked) => answered.then(() => real.acquire(asked)) }));
  let questions = 0;
  const remembers = async (): Promise<number> => {
    if (questions++ === 0) await trusted;
    return 60_000;
  };
  const sure = others.map((store) => ({ ...store, remembers: () => Promise.resolve(60_000) }));
  const { mutex } = quorumStore([{ ...late, remembers }, ...sure], { quarantine: 10_000 });
  for (const store of others) await store.mutex.acquire({ ...request, owner: 'b' });
  expect(await mutex.acquire(request)).toMatchObject({ granted: false, holder: 'b' });
  answer();
  await nextTurn();
  for (const store of others) await store.mutex.release({ key: 'key', owner: 'b', keepFor: 0 });
  expect(await mutex.acquire(request)).toMatchObject({ granted: true });
  trust();
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  for (const store of members) expect((await store.mutex.check(request)).state).toBe('held');
});

it('a member gets a lease back only when a majority has renewed it in the same round', async () => {
  const members = three();
  const { mutex } = quorumStore(members, { quarantine: 0 });
  await mutex.acquire(request);
  const lose = (index: number) => members[index]!.mutex.release({ key: 'key', owner: 'a', keepFor: 0 });
  const holds = async () => Promise.all(members.map(async (member) => (await member.mutex.check(request)).state === 'held'));
  await lose(0);
  expect(await mutex.renew([request])[0]).toBe('renewed');
  await nextTurn();
  expect(await holds()).toEqual([true, true, true]);
  await lose(0);
  await lose(1);
  expect(await mutex.renew([request])[0]).toBe('lost');
  await nextTurn();
  expect(await holds()).toEqual([false, false, true]);
});
