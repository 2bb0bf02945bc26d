// What the metrics count, as prom-client and an OpenTelemetry SDK see it.
import { mayTake, passTime } from '../support/virtual-time.js';
import { Injectable } from '@nestjs/common';
import { register, Registry } from 'prom-client';
import { DistributedLock, LeaderOnly } from 'nestjs-distributed-lock';
import { Locks, LockLostError, StoreError, type LocksOptions, type LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace-base';
import { gate } from '../support/gate.js';
import { boot } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { parseScrape, total, valuesOf, type Scrape } from './scrape.js';
import { startSdk } from './sdk.js';

mayTake(120_000);

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const heap = () => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

const label = 'A.b';
const registry = new Registry();
const opened: Locks[] = [];
function open(store: LockStore = memoryStore(), options: LocksOptions = {}): Locks {
  const locks = new Locks(store, { telemetry: prometheus(registry), logger: false, ...options });
  opened.push(locks);
  return locks;
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
  registry.clear();
});

const scrape = async (): Promise<Scrape> => parseScrape(await registry.metrics());
const count = async (name: string, labels?: Record<string, string>) => total(await scrape(), `distributed_lock_${name}`, labels);

/** With its mutex changed. */
const changed = (store: LockStore, mutex: Partial<LockStore['mutex']>): LockStore => ({
  ...store,
  mutex: Object.assign(Object.create(store.mutex) as LockStore['mutex'], mutex),
});

/** What no metric may contain. */
const SECRETS = { sku: 'sku-of-alice', key: 'order-of-bob' };
const { passed, open: go } = gate();

@Injectable()
class StockService {
  @DistributedLock<StockService['reduce']>({ key: (sku) => sku, waitTimeout: 20_000 })
  async reduce(_sku: string): Promise<void> {
    await passed;
  }

  @DistributedLock({ value: SECRETS.key, waitTimeout: 30 })
  async hurry(): Promise<void> {}

  @LeaderOnly('reports')
  async report(): Promise<void> {}
}

it('an app is scraped for what its locks do, and neither for keys, arguments nor owners', async () => {
  const { get, locks } = await boot({ providers: [StockService] }, { telemetry: prometheus() });
  const stock = get(StockService);
  const current = async () => parseScrape(await register.metrics());
  const of = { lock: 'StockService.reduce', kind: 'mutex', store: 'memory' };

  const first = stock.reduce(SECRETS.sku);
  await passTime(5);
  const second = stock.reduce(SECRETS.sku);
  await passTime(300);
  const during = await current();
  expect(total(during, 'distributed_lock_held', of)).toBe(1);
  expect(total(during, 'distributed_lock_waiting', of)).toBe(1);
  expect(total(during, 'distributed_lock_oldest_hold_seconds', of)).toBeCloseTo(0.305, 2);
  expect(total(during, 'distributed_lock_oldest_wait_seconds', of)).toBeCloseTo(0.3, 2);
  expect(total(during, 'distributed_lock_leader', { election: 'reports', store: 'memory' })).toBe(1);
  expect(total(during, 'distributed_lock_subscriber', { store: 'memory' })).toBe(1);

  const holder = await locks.acquire(`${SECRETS.key}-locks`);
  await expect(stock.hurry()).rejects.toThrow('Could not acquire');
  await holder.release();
  go();
  await Promise.all([first, second]);

  const after = await current();
  const counted = (name: string, labels: Record<string, string>) => total(after, `distributed_lock_${name}`, labels);
  expect(counted('wait_duration_seconds_count', { ...of, outcome: 'acquired' })).toBe(2);
  expect(counted('wait_duration_seconds_count', { lock: 'StockService.hurry', outcome: 'timeout' })).toBe(1);
  expect(counted('wait_duration_seconds_count', { lock: '(none)', outcome: 'acquired' })).toBeGreaterThanOrEqual(1);
  expect(counted('grants_total', { ...of, via: 'free' })).toBe(1);
  expect(counted('hold_duration_seconds_count', { ...of, outcome: 'released' })).toBe(2);
  expect(counted('held', of)).toBe(0);
  expect(counted('waiting', of)).toBe(0);
  expect(counted('request_duration_seconds_count', { operation: 'acquire', outcome: 'ok' })).toBeGreaterThanOrEqual(4);

  const text = await register.metrics();
  for (const secret of Object.values(SECRETS)) expect(text).not.toContain(secret);
  expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
  expect(text).not.toContain(`:${process.pid}`);
  expect([...valuesOf(after, 'lock')].sort()).toEqual(['(none)', 'StockService.hurry', 'StockService.reduce', 'StockService.report']);
});

describe('metrics', () => {
  it('have 101 labels at most, warn once, and need no memory per key', async () => {
    // Spans that were kept would fill the memory.
    const sdk = startSdk({ sampler: new AlwaysOffSampler() });
    const warnings: string[] = [];
    const warn = (message: string) => void warnings.push(message);
    const locks = open(memoryStore(), { telemetry: [prometheus(registry), openTelemetry()], logger: { warn, error: warn } });
    const KEYS = 10_000;
    let before = 0;
    // The first fifth fills the caches: the queues that are kept, the series of the labels.
    for (let index = 0; index < KEYS; index++) {
      await locks.using(`key-${index}`, () => undefined, { label: `Service.method${index % 1000}` });
      if (index === KEYS / 5) before = heap();
    }
    expect((heap() - before) / KEYS).toBeLessThan(50);
    for (const each of [await scrape(), await sdk.scrape()]) {
      expect(valuesOf(each, 'lock').size).toBe(101);
      expect(valuesOf(each, 'lock')).toContain('(other)');
      expect(total(each, 'distributed_lock_grants_total')).toBe(KEYS);
    }
    // Both adapters say it; a line that repeats is written once a minute.
    expect(warnings).toEqual([expect.stringContaining('More than 100 labels')]);
    await sdk.stop();
  });

  it('are right after losses and timeouts', async () => {
    const store = memoryStore();
    const locks = open(store);
    for (let round = 0; round < 20; round++) {
      const lease = await locks.acquire(`key-${round}`, { label });
      const waiter = locks.acquire(`key-${round}`, { label, waitTimeout: 20 }).catch(() => undefined);
      if (round % 2) await waiter;
      await store.mutex.release({ key: lease.key, owner: lease.owner, keepFor: 0 });
      await expect(lease.renew()).rejects.toThrow(LockLostError);
      if (round % 3) await lease.release();
      await (await waiter)?.release();
    }
    expect(await count('lost_total', { reason: 'taken' })).toBe(20);
    expect(await count('hold_duration_seconds_count', { outcome: 'lost' })).toBe(20);
    expect(await count('held')).toBe(0);
    expect(await count('waiting')).toBe(0);
  });

  it('count one hold of a lease that was found lost after its release', async () => {
    const store = memoryStore();
    const locks = open(store, { localQueue: { handOvers: 1 } });
    const first = await locks.acquire('key', { keyTimeout: 60_000 });
    const second = locks.acquire('key', { keyTimeout: 60_000, waitTimeout: 5000 });
    await eventually(async () => (await count('waiting')) === 1);
    await store.mutex.release({ key: 'key', owner: first.owner, keepFor: 0 });
    await first.release();
    await (await second).release();
    expect(await count('lost_total')).toBe(1);
    expect(await count('hold_duration_seconds_count', { outcome: 'released' })).toBe(2);
    expect(await count('hold_duration_seconds_count')).toBe(2);
  });

  it('tell a lease that reached its maxHold from one that was released', async () => {
    const lease = await open().acquire('key', { maxHold: 20 });
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    await lease.release();
    expect(await count('hold_duration_seconds_count', { outcome: 'limited' })).toBe(1);
  });

  it('count a caller as waiting when its key was found taken, and not while it asks', async () => {
    const store = memoryStore();
    const { passed, open: answer } = gate();
    const locks = open(changed(store, { acquire: (request) => passed.then(() => store.mutex.acquire(request)) }));
    const holder = await open(store, { telemetry: [] }).acquire('key');
    const waiter = locks.acquire('key', { waitTimeout: 5000 });
    await passTime(10);
    expect(await count('waiting')).toBe(0);
    answer();
    await eventually(async () => (await count('waiting')) === 1);
    await holder.release();
    await (await waiter).release();
  });

  it('count no standby of an election as a caller that waits', async () => {
    const locks = open();
    const leader = await locks.acquire('shop-leader');
    const election = locks.leaderElection('shop');
    const standby = election.run(() => Promise.resolve()).catch(() => undefined);
    const caller = locks.acquire('shop-leader', { waitTimeout: 60_000, reentrant: false });
    await eventually(async () => (await locks.inspect('shop-leader')).waiters.flatMap(({ report }) => report ?? []).length === 2);
    expect([await count('waiting'), await count('leader')]).toEqual([1, 0]);
    await leader.release();
    await election.resign();
    await (await caller).release();
    await standby;
  });

  it('say that waiters poll only while the store has refused one of them and sends no messages', async () => {
    const store = memoryStore();
    const wakeUps = { isOpen: false, open: () => Promise.resolve(), listen: () => () => undefined };
    const locks = open(changed(store, { wakeUps }));
    const subscriber = () => count('subscriber');
    const mine = await locks.acquire('mine');
    const local = locks.acquire('mine', { waitTimeout: 60_000 });
    await eventually(async () => (await count('waiting')) === 1);
    expect(await subscriber()).toBe(1);

    const theirs = await open(store, { telemetry: [] }).acquire('theirs');
    const waiter = locks.acquire('theirs', { waitTimeout: 60_000 });
    await eventually(async () => (await subscriber()) === 0);
    wakeUps.isOpen = true;
    expect(await subscriber()).toBe(1);
    wakeUps.isOpen = false;
    expect(await subscriber()).toBe(0);
    await theirs.release();
    await (await waiter).release();
    expect(await subscriber()).toBe(1);
    await mine.release();
    await (await local).release();
  });

  it('tell the age of the oldest hold, not of the last one', async () => {
    const locks = open();
    await locks.acquire('first', { label });
    await passTime(50_000);
    await locks.acquire('second', { label });
    await passTime(1000);
    expect(await count('oldest_hold_seconds')).toBeCloseTo(51, 1);
  });

  it.each([
    ['error', new Error('no')],
    ['refused', new StoreError('The store failed: it is full', { transient: false, isRefusal: true })],
  ])('count an outage as one, with its requests: %s', async (outcome, cause) => {
    const locks = open(changed(memoryStore(), { acquire: () => Promise.reject(cause) }));
    await expect(locks.acquire('key', { label })).rejects.toThrow('The store failed');
    expect(await count('wait_duration_seconds_count', { lock: label, outcome: 'outage' })).toBe(1);
    expect(await count('request_duration_seconds_count', { operation: 'acquire', outcome })).toBe(1);
  });
});

describe('a registry', () => {
  it('has each metric once, for all Locks that report to it', async () => {
    const all = [open(), open()] as const;
    const leases = await Promise.all(all.map((locks) => locks.acquire('key', { label })));
    expect(await count('held', { lock: label })).toBe(2);
    await leases[0]!.release();
    await all[0].close();
    expect(await count('held', { lock: label })).toBe(1);
    expect(await count('grants_total', { lock: label })).toBe(2);
    await all[1].close();
    expect(await count('held')).toBe(0);
  });

  it('that was cleared gets the metrics again', async () => {
    for (let round = 0; round < 2; round++) {
      const locks = open();
      await locks.using('key', () => undefined);
      expect(await count('grants_total')).toBe(1);
      await locks.close();
      registry.clear();
    }
  });

  it('that has another metric of this name is refused', () => {
    registry.registerMetric({ name: 'distributed_lock_held' } as never);
    expect(() => new Locks(memoryStore(), { telemetry: prometheus(registry) })).toThrow('already been registered');
  });

  it('is made into telemetry first', () => {
    expect(() => new Locks(memoryStore(), { telemetry: [prometheus] as never })).toThrow('"telemetry" must be prometheus()');
  });
});
