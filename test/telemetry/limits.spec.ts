import { Registry } from 'prom-client';
import { Locks, LockLostError, type Telemetry } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AlwaysOffSampler, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { eventually } from '../support/eventually.js';
import { parseScrape, total, valuesOf, type Scrape } from './scrape.js';
import { startSdk } from './sdk.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const heap = () => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

describe('telemetry', () => {
  const registry = new Registry();
  const scrape = async (): Promise<Scrape> => parseScrape(await registry.metrics());
  afterEach(() => registry.clear());

  it('keeps 101 labels at most, warns once, and has a flat heap over 100,000 keys', async () => {
    // Spans that were kept would fill the memory.
    const sdk = startSdk({ sampler: new AlwaysOffSampler() });
    const warnings: string[] = [];
    const warn = (message: string) => void warnings.push(message);
    const logger = { warn, error: warn };
    const locks = new Locks(memoryStore(), { telemetry: [prometheus(registry), openTelemetry()], logger });
    const KEYS = 100_000;
    let [index, before] = [0, 0];
    const call = () => locks.using(`key-${index}`, () => undefined, { label: `Service.method${index++ % 1000}` });
    // The first tenth fills the caches: the queues that are kept, the series of the labels.
    for (; index < KEYS;) {
      await call();
      if (index === KEYS / 10) before = heap();
    }
    expect((heap() - before) / 1024 / 1024).toBeLessThan(3);
    for (const each of [await scrape(), await sdk.scrape()]) {
      expect(valuesOf(each, 'lock').size).toBe(101);
      expect(valuesOf(each, 'lock')).toContain('(other)');
      expect(total(each, 'distributed_lock_grants_total')).toBe(KEYS);
    }
    // Both adapters say it; a line that repeats is written once a minute.
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('More than 100 labels');
    await locks.close();
    await sdk.stop();
  }, 120_000);

  it('has gauges that are right after losses, timeouts and a close', async () => {
    const store = memoryStore();
    const locks = new Locks(store, { telemetry: prometheus(registry), logger: false });
    const label = 'A.b';
    for (let round = 0; round < 20; round++) {
      const lease = await locks.acquire(`key-${round}`, { label });
      const waiter = locks.acquire(`key-${round}`, { label, waitTimeout: 20 }).catch(() => undefined);
      if (round % 2) await waiter;
      await store.mutex.release({ key: lease.key, owner: lease.owner, keepFor: 0 });
      await expect(lease.renew()).rejects.toThrow(LockLostError);
      if (round % 3) await lease.release();
      await (await waiter)?.release();
    }
    const after = await scrape();
    expect(total(after, 'distributed_lock_lost_total', { reason: 'taken' })).toBe(20);
    expect(total(after, 'distributed_lock_hold_duration_seconds_count', { outcome: 'lost' })).toBe(20);
    expect(total(after, 'distributed_lock_held')).toBe(0);
    expect(total(after, 'distributed_lock_waiting')).toBe(0);
    await locks.close();
  });

  it('counts one hold of a lease that was found lost after its release', async () => {
    const store = memoryStore();
    const locks = new Locks(store, { telemetry: prometheus(registry), logger: false, localQueue: { handOvers: 1 } });
    const first = await locks.acquire('key', { keyTimeout: 60_000 });
    const second = locks.acquire('key', { keyTimeout: 60_000, waitTimeout: 5000 });
    await eventually(async () => total(await scrape(), 'distributed_lock_waiting') === 1);
    await store.mutex.release({ key: 'key', owner: first.owner, keepFor: 0 });
    await first.release();
    await (await second).release();
    const after = await scrape();
    expect(total(after, 'distributed_lock_lost_total')).toBe(1);
    expect(total(after, 'distributed_lock_hold_duration_seconds_count', { outcome: 'released' })).toBe(2);
    expect(total(after, 'distributed_lock_hold_duration_seconds_count')).toBe(2);
    await locks.close();
  });

  it('tells a lease that reached its maxHold from one that was released', async () => {
    const locks = new Locks(memoryStore(), { telemetry: prometheus(registry), logger: false });
    const lease = await locks.acquire('key', { maxHold: 20 });
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    await lease.release();
    expect(total(await scrape(), 'distributed_lock_hold_duration_seconds_count', { outcome: 'limited' })).toBe(1);
    await locks.close();
  });

  it('counts a caller as waiting when its key was found taken, and not while it asks', async () => {
    const store = memoryStore();
    let answer!: () => void;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const acquire: typeof store.mutex.acquire = (request) => answered.then(() => store.mutex.acquire(request));
    const mutex = Object.assign(Object.create(store.mutex) as typeof store.mutex, { acquire });
    const locks = new Locks({ ...store, mutex }, { telemetry: prometheus(registry), logger: false });
    const other = new Locks(store, { logger: false });
    const holder = await other.acquire('key');
    const waiter = locks.acquire('key', { waitTimeout: 5000 });
    expect(total(await scrape(), 'distributed_lock_waiting')).toBe(0);
    answer();
    await eventually(async () => total(await scrape(), 'distributed_lock_waiting') === 1);
    await holder.release();
    await (await waiter).release();
    await Promise.all([locks.close(), other.close()]);
  });

  it('tells the age of the oldest hold, not of the last one', async () => {
    const locks = new Locks(memoryStore(), { telemetry: prometheus(registry), logger: false });
    const start = performance.now();
    await locks.acquire('first', { label: 'A.b' });
    await eventually(() => performance.now() > start + 50);
    const between = performance.now();
    await locks.acquire('second', { label: 'A.b' });
    expect(total(await scrape(), 'distributed_lock_oldest_hold_seconds')).toBeGreaterThan((performance.now() - between) / 1000);
    expect(total(await scrape(), 'distributed_lock_oldest_hold_seconds')).toBeGreaterThanOrEqual(0.04);
    await locks.close();
  });

  it('counts an outage as one, with its requests', async () => {
    const store = memoryStore();
    const broken = {
      ...store,
      mutex: Object.assign(Object.create(store.mutex) as typeof store.mutex, { acquire: () => Promise.reject(new Error('no')) }),
    };
    const locks = new Locks(broken, { telemetry: prometheus(registry), logger: false });
    await expect(locks.acquire('key', { label: 'A.b' })).rejects.toThrow('The store failed');
    const after = await scrape();
    expect(total(after, 'distributed_lock_wait_duration_seconds_count', { lock: 'A.b', outcome: 'outage' })).toBe(1);
    expect(total(after, 'distributed_lock_request_duration_seconds_count', { operation: 'acquire', outcome: 'error' })).toBe(1);
    await locks.close();
  });

  const bad = () => {
    throw new Error('the exporter is broken');
  };
  const slow: SpanProcessor = {
    onStart: () => undefined,
    onEnd: () => undefined,
    forceFlush: () => new Promise(() => undefined),
    shutdown: () => Promise.resolve(),
  };
  const throwing: Telemetry = {
    observe: (source) => {
      for (const event of ['acquired', 'waiting', 'released', 'timeout', 'lost'] as const) source.on(event, bad);
      return { request: bad, stop: () => undefined };
    },
  };

  it.each([
    ['throws in each span', { ...slow, onStart: bad }],
    ['throws at the end of each span', { ...slow, onEnd: bad }],
    ['never answers', slow],
  ])('changes no result and no wait when the exporter %s', async (_name, processor) => {
    const sdk = startSdk({ processors: [processor] });
    const locks = new Locks(memoryStore(), { telemetry: [openTelemetry(), throwing, prometheus(registry)], logger: false });
    const lease = await locks.acquire('key');
    const start = performance.now();
    const waiter = locks.using('key', () => 'result', { waitTimeout: 5000 });
    await expect(locks.using('key', () => 'never', { waitTimeout: 20 })).rejects.toThrow('Could not acquire');
    await expect(locks.using('other', () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    await lease.release();
    expect(await waiter).toBe('result');
    expect(performance.now() - start).toBeLessThan(1000);
    await eventually(async () => total(await scrape(), 'distributed_lock_hold_duration_seconds_count') === 3);
    await locks.close();
    await sdk.stop();
  });
});
