// A lease that is handed over, where the store does not matter. What each store must do is in the contracts.
import { mayTake, passTime } from '../support/virtual-time.js';
import { Registry } from 'prom-client';
import { type Lease, LockConfigError, Locks, type LocksOptions, StoreError, UnsupportedPrimitiveError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { faultyStore, LockProbe, lockMatchers } from 'nestjs-distributed-lock/testing';
import type { HeldLease } from '../../lib/core/holding/held-lease.js';
import { closedAfter } from '../support/closed-after.js';
import { rejection, throwing } from '../support/rejection.js';

mayTake(60_000);
expect.extend(lockMatchers);
const within = 5_000;
const HOUR = 3_600_000;
const open = (store = memoryStore(), options: LocksOptions = {}) => closedAfter(new Locks(store, { logger: false, ...options }));

describe('a lease that cannot be handed over says so, and is held on', () => {
  it.each<[string, (locks: Locks) => Promise<Lease>]>([
    ['of a read lock', (locks) => locks.readWriteLock('key').read.acquire()],
    ['of a write lock', (locks) => locks.readWriteLock('key').write.acquire()],
    ['of a semaphore', (locks) => locks.semaphore('key', { permits: 1 }).acquire()],
    ['of a multi-lock', (locks) => locks.multiLock(['a', 'b']).acquire()],
    ['of a part of a multi-lock', async (locks) => (await locks.multiLock(['a', 'b']).acquire()).leases[1]!],
  ])('%s', async (_which, take) => {
    const lease = await take(open());
    expect(await rejection(lease.handOver({ within }))).toBeInstanceOf(UnsupportedPrimitiveError);
    lease.assertHeld();
  });

  it('of a leader', async () => {
    await open()
      .leaderElection('chief')
      .run(async (term) => {
        expect(await rejection(term.handOver({ within }))).toBeInstanceOf(UnsupportedPrimitiveError);
        term.assertHeld();
      });
  });

  it('of a store that does not offer it', async () => {
    const store = memoryStore();
    const mutex = Object.assign(Object.create(store.mutex) as typeof store.mutex, { adopt: undefined });
    const ticket = await (await open(store).acquire('key')).handOver({ within });
    const locks = open({ ...store, mutex });
    expect(await rejection((await locks.acquire('other')).handOver({ within }))).toBeInstanceOf(UnsupportedPrimitiveError);
    expect(await rejection(locks.adopt(ticket))).toBeInstanceOf(UnsupportedPrimitiveError);
  });

  it.each([{}, { within: 9 }, { within: 1.5 }, { within: Infinity }, { within, keyTimeout: 1 }, undefined])('with %p', async (options) => {
    const lease = await open().acquire('key');
    expect(await rejection(lease.handOver(options as { within: number }))).toBeInstanceOf(LockConfigError);
    lease.assertHeld();
  });
});

it('a hand-over under which a callback of the release fails rejects with its error, and the key is released: nobody has the ticket', async () => {
  const locks = open();
  const lease = (await locks.acquire('key')) as HeldLease;
  lease.onRelease(throwing(new Error('a transaction is open')));
  expect(await rejection(lease.handOver({ within: 60_000 }))).toMatchObject({ message: 'a transaction is open' });
  expect(await locks.using('key', () => 'free', { waitTimeout: 0 })).toBe('free');
});

it.each([
  ['a hand-over', (lease: Lease) => lease.handOver({ within: HOUR })],
  ['a longer renewal', (lease: Lease) => lease.renew(HOUR)],
])('%s without an answer may have been applied: the release is sent again for as long as the key may be taken', async (_what, ask) => {
  const inner = memoryStore();
  const store = faultyStore(inner);
  const lease = await open(store).acquire('key', { keyTimeout: 5_000 });
  const lost = store.faults.dropReply('renew');
  const asked = rejection(ask(lease));
  await lost;
  expect(await asked).toBeInstanceOf(StoreError);
  store.faults.outage();
  expect(await lease.release()).toBe(true);
  await passTime(20_000);
  store.faults.clear();
  await passTime(20_000);
  expect(await open(inner).using('key', () => 'free', { waitTimeout: 0 })).toBe('free');
});

it('an error of adopt names the caller', async () => {
  const store = faultyStore(memoryStore());
  const locks = open(store);
  const ticket = await (await locks.acquire('key')).handOver({ within: 60_000 });
  store.faults.outage();
  expect(await rejection(locks.adopt(ticket, { label: 'Worker.ship', waitTimeout: 0 }))).toMatchObject({
    message: expect.stringMatching(/^Worker\.ship: /) as string,
  });
});

describe('a text that is not a ticket', () => {
  const textOf = (ticket: unknown, prefix = 'ndl1.') => prefix + Buffer.from(JSON.stringify(ticket)).toString('base64url');
  const good = { key: 'key', owner: 'a@b:1:c', keepFor: 0 };
  it.each<[string, unknown, unknown]>([
    ['no text', undefined, LockConfigError],
    ['empty', '', LockConfigError],
    ['of another form', textOf(good, 'ndl2.'), LockConfigError],
    ['cut off', textOf(good).slice(0, -9), LockConfigError],
    ['null', textOf(null), LockConfigError],
    ['without an owner', textOf({ ...good, owner: undefined }), LockConfigError],
    ['with an empty key', textOf({ ...good, key: '' }), LockConfigError],
    ['with a minHold that is none', textOf({ ...good, keepFor: 1.5 }), LockConfigError],
  ])('is refused: %s', async (_which, text, error) => {
    expect(await rejection(open().adopt(text as string))).toBeInstanceOf(error);
  });

  it('can hold more than this version knows', async () => {
    expect(await rejection(open().adopt(textOf({ ...good, more: 1 })))).toMatchObject({ name: 'LockLostError' });
  });
});

describe('operators', () => {
  it('see who has handed a key over and until when, until it is adopted, and whose it is then', async () => {
    const store = memoryStore();
    const lease = await open(store, { app: 'web' }).acquire('order:42', { label: 'Orders.place' });
    const ticket = await lease.handOver({ within: 60_000 });
    const locks = open(store);
    const [holder] = (await locks.inspect('order:42')).holders;
    const until = holder!.report!.handedOverUntil!;
    expect(Math.abs(until.getTime() - Date.now() - 60_000)).toBeLessThan(1_000);
    expect(holder).toMatchObject({ app: 'web', pid: process.pid, phase: 'held', report: { label: 'Orders.place' } });
    expect(holder!.owner).not.toBe(lease.owner);
    const adopted = await locks.adopt(ticket, { label: 'Worker.ship' });
    expect((await locks.inspect('order:42')).holders).toMatchObject([{ owner: adopted.owner, report: { label: 'Worker.ship' } }]);
    expect((await locks.inspect('order:42')).holders[0]!.report).not.toHaveProperty('handedOverUntil');
  });

  it('can free a key that waits to be adopted: it cannot be adopted then', async () => {
    const locks = open();
    const ticket = await (await locks.acquire('key')).handOver({ within: 60_000 });
    expect(await locks.forceRelease('key', { reason: 'the queue was emptied', grace: 0 })).toMatchObject({ outcome: 'forced' });
    expect(await rejection(locks.adopt(ticket))).toMatchObject({ name: 'LockLostError' });
    expect(await locks.using('key', () => 'free')).toBe('free');
  });

  it('ask a holder to end: it holds the key until its release, and cannot hand it over', async () => {
    const locks = open();
    const lease = await locks.acquire('key');
    const asked = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    const forced = locks.forceRelease('key', { reason: 'a deployment', grace: 60_000 });
    await asked;
    expect(await rejection(lease.handOver({ within }))).toMatchObject({ name: 'LockLostError', revoked: { reason: 'a deployment' } });
    lease.assertHeld();
    expect(await lease.release()).toBe(true);
    expect(await forced).toMatchObject({ outcome: 'gave back' });
    expect(await locks.using('key', () => 'free')).toBe('free');
  });

  it('count it as adopted, and its first holding as handed over', async () => {
    const registry = new Registry();
    const locks = open(memoryStore(), { telemetry: prometheus(registry) });
    await (await locks.adopt(await (await locks.acquire('key')).handOver({ within }))).release();
    const scrape = await registry.metrics();
    expect(scrape).toMatch(/distributed_lock_grants_total\{.*via="adopted"\} 1/);
    expect(scrape).toMatch(/distributed_lock_hold_duration_seconds_count\{.*outcome="handedOver"\} 1/);
    expect(scrape).toMatch(/distributed_lock_request_duration_seconds_count\{.*operation="adopt".*\} 2/);
  });
});

it('the test kit has it in faultyStore and LockProbe', async () => {
  const store = faultyStore(memoryStore());
  const locks = open(store);
  const probe = new LockProbe(locks);
  const lease = await locks.acquire('key');
  const ticket = await lease.handOver({ within });
  expect(probe).toHoldNothing();
  const lost = store.faults.dropReply('acquire');
  const adopted = await locks.adopt(ticket);
  await lost;
  expect(probe.holdings).toMatchObject([{ state: 'handedOver' }, { state: 'held', owner: adopted.owner }]);
  await store.faults.lose('key');
  expect(adopted.signal.aborted).toBe(true);
  await adopted.release();
  probe.onApplicationShutdown();
});
