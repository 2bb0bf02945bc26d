import '../../support/virtual-time.js';
import os from 'node:os';
import { LockConfigError } from '../../../lib/core/model/errors.js';
import type { AcquireRequest } from '../../../lib/core/store/lease-driver.js';
import { countSuspend } from '../../../lib/core/util/clock.js';
import { LeaseSteps } from '../../../lib/stores/records/lease.steps.js';
import { RecordClock } from '../../../lib/stores/records/record.clock.js';
import { RecordWork, type KeyRecord } from '../../../lib/stores/records/record.work.js';

/** Milliseconds since 1970. */
const START = 1_700_000_000_000;

describe('the steps of a lock', () => {
  let record: KeyRecord | undefined;
  let time: number;
  let fence: number;
  /** Of the last step. */
  let work: RecordWork;
  const mutex = new LeaseSteps('mutex');
  const semaphore = new LeaseSteps('semaphore');

  beforeEach(() => {
    [record, time, fence] = [undefined, START, 0];
  });

  function step<Reply>(make: (work: RecordWork) => Reply): Reply {
    work = new RecordWork('key', structuredClone(record), { early: time, late: time, micros: time * 1000 }, fence);
    const reply = make(work);
    if (work.isChanged) ({ record, fence } = work);
    return reply;
  }
  const acquire = (owner: string, request: Partial<AcquireRequest> = {}, steps = mutex, inbox = owner.slice(0, 1)) =>
    step((each) => steps.acquire(each, { key: 'key', owner, ttl: 500, tokens: 1, queue: true, ...request }, inbox));
  const release = (owner: string, keepFor = 0) => step((each) => mutex.release(each, { key: 'key', owner, keepFor }));
  const state = (owner: string) => step((each) => mutex.check(each, { key: 'key', owner })).state;

  it('forget all queue entries of a process that does not take what it was offered', () => {
    acquire('a1');
    for (const owner of ['b1', 'b2', 'c1', 'b3']) acquire(owner);
    release('a1');
    time += 501;
    expect(acquire('c1')).toMatchObject({ granted: true });
    expect(['b1', 'b2', 'b3', 'c1'].map(state)).toEqual(['taken', 'taken', 'taken', 'held']);
  });

  it('keep the other queue entries of a process whose lease has run out', () => {
    acquire('a1');
    acquire('a2');
    time += 501;
    acquire('b1');
    expect(['a2', 'b1'].map(state)).toEqual(['held', 'queued']);
  });

  it('move the end of the lease that is renewed, and of no other one', () => {
    const share = { count: 1, permits: 2, rank: 0 } as const;
    for (const owner of ['a1', 'b1']) acquire(owner, { share }, semaphore);
    time += 100;
    expect(step((each) => semaphore.renew(each, { key: 'key', owner: 'a1', ttl: 500 }))).toBe('renewed');
    expect(['a1', 'b1'].map((owner) => step((each) => semaphore.check(each, { key: 'key', owner })).remaining)).toEqual([500, 400]);
  });

  it('rely on the end of the lease that ended last', () => {
    acquire('a1');
    expect(work.notBefore).toBe(0);
    time += 501;
    acquire('b1');
    expect(work.notBefore).toBe(START + 500);
  });

  it('keep no queue entry of an owner that does not queue', () => {
    const share = { permits: 2, rank: 0 } as const;
    acquire('a1', { share: { ...share, count: 1 } }, semaphore);
    acquire('b1', { share: { ...share, count: 2 } }, semaphore);
    expect(acquire('c1', { queue: false, share: { ...share, count: 1 } }, semaphore)).toMatchObject({ granted: false });
    expect(work.isChanged).toBe(false);
    // What another owner of the process changes with it is written.
    step((each) => {
      semaphore.acquire(each, { key: 'key', owner: 'c1', ttl: 500, tokens: 1, queue: false, share: { ...share, count: 1 } }, 'c');
      semaphore.renew(each, { key: 'key', owner: 'a1', ttl: 1000 });
    });
    expect(work.isChanged).toBe(true);
    expect(step((each) => semaphore.check(each, { key: 'key', owner: 'c1' })).state).toBe('taken');
  });

  it('do not take a key for another kind of lock while it is in use', () => {
    acquire('a1');
    const share = { count: 1, permits: 2, rank: 0 } as const;
    expect(() => acquire('b1', { share }, semaphore)).toThrow(LockConfigError);
    expect(step((each) => semaphore.release(each, { key: 'key', owner: 'a1', keepFor: 0 }))).toBe('lost');
    release('a1');
    expect(acquire('b1', { share }, semaphore)).toMatchObject({ granted: true });
  });

  it('leave a key that is free and not asked for as it is, and offer it when it is released', () => {
    acquire('a1');
    acquire('b1');
    release('a1');
    expect([...work.messages!.keys()]).toEqual(['b']);
    expect(state('b1')).toBe('held');
    expect(release('a1')).toBe('lost');
    expect(work.isChanged).toBe(false);
  });

  it('tell the next waiter when a minHold ends', () => {
    acquire('a1');
    acquire('b1');
    expect(release('a1', 300)).toBe('released');
    expect([...work.messages!]).toEqual([['b', ['b1\t300']]]);
    expect(release('a1')).toBe('released');
    time += 301;
    expect(acquire('b1')).toMatchObject({ granted: true });
  });
});

describe('the clock of a table', () => {
  /** Ours, in milliseconds. */
  let ours: number;
  /** By how much the table's is later. */
  let offset: number;
  let clock: RecordClock;

  beforeEach(() => {
    jest.spyOn(performance, 'now').mockImplementation(() => ours);
    [ours, offset] = [5_000, 1_000_000];
    clock = new RecordClock();
  });
  afterEach(() => jest.restoreAllMocks());

  /** A request that is so long on its way, and its reply. */
  const exchange = (there: number, back: number): boolean => {
    const sentAt = ours;
    ours += there;
    const told = ours + offset;
    ours += back;
    const { basis } = clock;
    clock.learn(told, sentAt);
    return !clock.isSetForward(told, basis);
  };

  it.each([
    [0, 0],
    [50, 0],
    [0, 50],
    [30, 70],
  ])('is between two bounds, by a request of %d ms and a reply of %d', (there, back) => {
    exchange(there, back);
    for (const later of [0, 1_000]) {
      ours += later;
      const { early, late } = clock.time;
      expect(early).toBe(ours + offset - back);
      expect(late).toBe(ours + offset + there);
    }
  });

  it('is known for ten seconds', () => {
    expect(clock.isKnown).toBe(false);
    exchange(1, 1);
    ours += 9_999;
    expect(clock.isKnown).toBe(true);
    ours += 1;
    expect(clock.isKnown).toBe(false);
  });

  it('is unknown after a suspend, also by the reply to a request of before', () => {
    let ahead = 0.5;
    jest.spyOn(os, 'uptime').mockImplementation(() => (ours + ahead) / 1000);
    const sentAt = (ours = 1_000); // other tests begin later
    countSuspend();
    exchange(1, 1);
    ahead += 220;
    countSuspend();
    clock.learn((ours += 1) + offset, sentAt);
    expect(clock.isKnown).toBe(false);
    exchange(1, 1);
    expect(clock.isKnown).toBe(true);
  });

  it('is unknown after an error: another server may answer next', () => {
    exchange(1, 1);
    clock.forget();
    expect(clock.isKnown).toBe(false);
  });

  it('is known better by a faster exchange, not worse by a slower one, unless that is a second later', () => {
    exchange(10, 10);
    exchange(2, 3);
    exchange(50, 50);
    expect(clock.time).toMatchObject({ early: ours + offset - 3, late: ours + offset + 2 });
    ours += 1_000;
    exchange(50, 40);
    expect(clock.time).toMatchObject({ early: ours + offset - 40, late: ours + offset + 50 });
  });

  it('was set forward: what was written by the time of before ends too early', () => {
    expect(exchange(5, 5)).toBe(true);
    offset += 30;
    expect(exchange(5, 5)).toBe(false);
    expect(clock.time).toMatchObject({ early: ours + offset - 5, late: ours + offset + 5 });
    expect(exchange(5, 5)).toBe(true);
  });

  it('was set back: what was written ends later, and the new time counts from then on', () => {
    exchange(5, 5);
    offset -= 30;
    expect(exchange(20, 0)).toBe(true);
    expect(clock.time).toMatchObject({ early: ours + offset, late: ours + offset + 20 });
  });

  it('may drift by a thousandth', () => {
    exchange(0, 0);
    ours += 5_000;
    offset += 5;
    expect(exchange(0, 0)).toBe(true);
  });

  it('gives tokens in microseconds, by the clock of this machine where that of the table is no wall clock', () => {
    exchange(3, 3);
    expect(Math.abs(clock.time.micros - Date.now() * 1000)).toBeLessThan(10_000_000);
    offset = 1.6e12;
    clock.forget();
    exchange(3, 3);
    expect(clock.time.micros).toBe((ours + offset + 3) * 1000);
  });
});
