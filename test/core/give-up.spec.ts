import { mayTake, passTime } from '../support/virtual-time.js';
import { type LatchDriver, Locks, StoreError, type LeaseDriver } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { closedAfter } from '../support/closed-after.js';
import { rejection, timed } from '../support/rejection.js';
import { timersLeft } from '../contract/timers-left.js';
import { failing, outage, refusal } from '../contract/misbehaviour.js';

mayTake(120_000);

const KEY = 'key';
const PATIENT = { keyTimeout: 30_000, waitTimeout: Infinity };
const REQUEST_TIMEOUT = 5_000;

const unsent = (): StoreError => new StoreError('Not sent, on purpose.', { transient: false, isUnsent: true });

/** Locks over a store of their own, and when each request was sent. */
function open(misbehaving: (real: LeaseDriver) => Partial<LeaseDriver>) {
  const store = memoryStore();
  const real = store.mutex;
  const altered = { ...real, ...misbehaving(real) };
  const start = performance.now();
  const sent: Record<'acquire' | 'release' | 'leave', number[]> = { acquire: [], release: [], leave: [] };
  const noted = <Verb extends keyof typeof sent>(verb: Verb) => ({
    [verb]: (request: never) => (sent[verb].push(performance.now() - start), altered[verb](request)),
  });
  const mutex = { ...altered, ...noted('acquire'), ...noted('release'), ...noted('leave') };
  const locks = closedAfter(new Locks({ ...store, requestTimeout: REQUEST_TIMEOUT, mutex }, { logger: false }));
  const unknown: string[] = [];
  locks.on('unknown', ({ operation }) => unknown.push(operation));
  const isFree = async () => (await real.check({ key: KEY, owner: 'nobody' })).state === 'free';
  return { locks, sent, unknown, isFree };
}

describe.each([
  ['release', (locks: Locks) => locks.using(KEY, () => 'done', PATIENT), () => ({})],
  ['leave', (locks: Locks) => rejection(locks.acquire(KEY, { ...PATIENT, waitTimeout: 0 })), failing('acquire', Infinity, refusal)],
] as const)('a %s that is refused for good', (verb, call, also) => {
  const refusedFor = (times: number) => open((real) => ({ ...also(real), ...failing(verb, times, refusal)(real) }));

  it('is repeated soon, then more and more rarely, and no more when the lease is over, and is one event', async () => {
    const { locks, sent, unknown } = refusedFor(Infinity);
    await call(locks);
    await passTime(60_000);
    const times = sent[verb];
    expect(times.length).toBeLessThanOrEqual(12);
    expect(times[3]).toBeLessThanOrEqual(400);
    expect(times.at(-1)).toBeGreaterThan(20_000);
    expect(times.at(-1)).toBeLessThan(30_000);
    expect(unknown).toEqual([verb]);
  });

  it('is not waited for by close(): it is sent once more at most, and no timer stays', async () => {
    // Those of the store and of the watchdog are shorter.
    const timers = timersLeft(1_000);
    const { locks, sent } = refusedFor(Infinity);
    await call(locks);
    for (let times = 0; times < 3; times++) await passTime(900);
    expect(timers()).toHaveLength(1);
    const { length } = sent[verb];
    expect((await timed(() => locks.close())).elapsed).toBeLessThanOrEqual(1);
    expect(timers()).toEqual([]);
    jest.restoreAllMocks();
    await passTime(30_000);
    expect(sent[verb]).toHaveLength(length + 1);
  });

  it('is done by close(), if the store does it then', async () => {
    const { locks, isFree } = refusedFor(6);
    await call(locks);
    await passTime(2_000);
    await locks.close();
    expect(await isFree()).toBe(true);
  });
});

it('a release that is refused while the locks are being closed is sent once more', async () => {
  const { locks, sent } = open(failing('release', Infinity, refusal));
  await locks.acquire(KEY, PATIENT);
  expect((await timed(() => locks.close())).elapsed).toBeLessThanOrEqual(1);
  await passTime(30_000);
  expect(sent.release).toHaveLength(2);
});

it('close() does not wait for a leave that the store refuses for now: it is sent once more', async () => {
  const passing = () => new StoreError('READONLY, on purpose.', { transient: true, isRefusal: true });
  const { locks, sent } = open((real) => ({
    ...failing('acquire', Infinity, passing)(real),
    ...failing('leave', Infinity, passing)(real),
  }));
  expect(await rejection(locks.acquire(KEY, { waitTimeout: 100 }))).toMatchObject({ isRefusal: true });
  const { length } = sent.leave;
  expect((await timed(() => locks.close())).elapsed).toBeLessThanOrEqual(1);
  await passTime(30_000);
  expect(sent.leave).toHaveLength(length + 1);
});

it('close() waits for a release that gets no answer, but not longer than four requests; it is sent again until its lease is over', async () => {
  const { locks, sent, isFree } = open(failing('release', 4, outage));
  await locks.using(KEY, () => 'done', PATIENT);
  await locks.close();
  expect([sent.release.length, await isFree()]).toEqual([5, true]);
  const away = open(failing('release', Infinity, outage));
  await away.locks.acquire(KEY, PATIENT);
  expect((await timed(() => away.locks.close())).elapsed).toBeLessThanOrEqual(4 * REQUEST_TIMEOUT);
  const { length } = away.sent.release;
  await passTime(5_000);
  expect(away.sent.release.length).toBeGreaterThan(length);
  await passTime(15_000);
  const all = away.sent.release.length;
  await passTime(15_000);
  expect(away.sent.release).toHaveLength(all);
});

describe('a request that was not sent', () => {
  it('of a call that ends with it needs no leave', async () => {
    const { locks, sent } = open(failing('acquire', Infinity, unsent));
    expect(await rejection(locks.acquire(KEY, PATIENT))).toMatchObject({ isUnsent: true });
    await passTime(5_000);
    expect([sent.acquire.length, sent.leave]).toEqual([1, []]);
  });

  it('takes nothing back of those before it', async () => {
    let sent = 0;
    const errors = () => (++sent === 1 ? outage() : unsent());
    const { locks, sent: requests } = open(failing('acquire', Infinity, errors));
    await rejection(locks.acquire(KEY, PATIENT));
    await passTime(5_000);
    expect([requests.acquire.length, requests.leave.length]).toEqual([2, 1]);
  });

  it.each([
    ['needs no leave', 1],
    ['needs one, if the store has its entry from before', 2],
  ])('of a caller that waits for a latch %s', async (_what, failsAt) => {
    const store = memoryStore();
    const { countDownLatch: real } = store;
    const sent: string[] = [];
    const latches: LatchDriver = Object.assign(Object.create(real!) as LatchDriver, {
      look: (look: Parameters<LatchDriver['look']>[0]) => {
        if (look.queue) sent.push('look');
        return look.queue && sent.length >= failsAt ? Promise.reject(unsent()) : real!.look(look);
      },
      leave: (of: Parameters<LatchDriver['leave']>[0]) => (sent.push('leave'), real!.leave(of)),
    });
    const locks = closedAfter(new Locks({ ...store, countDownLatch: latches }, { logger: false }));
    const latch = locks.countDownLatch(KEY);
    await latch.trySetCount(1);
    expect(await rejection(latch.await({ waitTimeout: Infinity, retryInterval: 100 }))).toMatchObject({ isUnsent: true });
    await passTime(5_000);
    expect(sent).toEqual([...Array<string>(failsAt).fill('look'), ...(failsAt === 1 ? [] : ['leave'])]);
  });
});
