import { register, Registry } from 'prom-client';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { ADAPTERS, serve } from '../integrations/http-app.js';
import { eventually } from '../support/eventually.js';
import { parseScrape, total, valuesOf } from './scrape.js';
import { SECRETS, StockController, StockService } from './shop.js';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-/;

describe.each(ADAPTERS)('a scrape of an app on %s', (adapter) => {
  it('has what its locks do, and neither keys, arguments nor owners', async () => {
    register.clear();
    const app = await serve(adapter, { controllers: [StockController], providers: [StockService] }, { telemetry: prometheus() });
    const stock = app.get(StockService);
    const scrape = async () => parseScrape((await app.ask('metrics')).text);
    const label = { lock: 'StockService.reduce', kind: 'mutex', store: 'memory' };

    stock.stop();
    const first = app.ask(`reduce/${SECRETS.sku}`);
    await eventually(async () => total(await scrape(), 'distributed_lock_held', label) === 1);
    const second = app.ask(`reduce/${SECRETS.sku}`);
    await eventually(async () => total(await scrape(), 'distributed_lock_waiting', label) === 1);
    const during = await scrape();
    expect(total(during, 'distributed_lock_oldest_hold_seconds', label)).toBeGreaterThan(
      total(during, 'distributed_lock_oldest_wait_seconds', label),
    );
    expect(total(during, 'distributed_lock_leader', { election: 'reports', store: 'memory' })).toBe(1);
    expect(total(during, 'distributed_lock_subscriber', { store: 'memory' })).toBe(1);

    const holder = await app.locks.acquire(`${SECRETS.key}-locks`);
    await expect(stock.hurry()).rejects.toThrow('Could not acquire');
    await holder.release();
    stock.go();
    await Promise.all([first, second]);

    const after = await scrape();
    const count = (name: string, labels: Record<string, string>) => total(after, name, labels);
    expect(count('distributed_lock_wait_duration_seconds_count', { ...label, outcome: 'acquired' })).toBe(2);
    expect(count('distributed_lock_wait_duration_seconds_count', { lock: 'StockService.hurry', outcome: 'timeout' })).toBe(1);
    expect(count('distributed_lock_wait_duration_seconds_count', { lock: '(none)', outcome: 'acquired' })).toBeGreaterThanOrEqual(1);
    expect(count('distributed_lock_grants_total', { ...label, via: 'free' })).toBe(1);
    expect(count('distributed_lock_hold_duration_seconds_count', { ...label, outcome: 'released' })).toBe(2);
    expect(count('distributed_lock_held', label)).toBe(0);
    expect(count('distributed_lock_waiting', label)).toBe(0);
    expect(count('distributed_lock_request_duration_seconds_count', { operation: 'acquire', outcome: 'ok' })).toBeGreaterThanOrEqual(4);
    await eventually(async () => total(await scrape(), 'distributed_lock_event_loop_lag_seconds_count') > 0);

    const { text } = await app.ask('metrics');
    for (const secret of Object.values(SECRETS)) expect(text).not.toContain(secret);
    expect(text).not.toMatch(UUID);
    expect(text).not.toContain(`:${process.pid}`);
    expect([...valuesOf(parseScrape(text), 'lock')].sort()).toEqual(['(none)', 'StockService.hurry', 'StockService.reduce']);
  });
});

describe('a registry', () => {
  it('has each metric once, for all Locks that report to it', async () => {
    const registry = new Registry();
    const all = [memoryStore(), memoryStore()].map((store) => new Locks(store, { telemetry: prometheus(registry), logger: false }));
    const leases = await Promise.all(all.map((locks) => locks.acquire('key', { label: 'A.b' })));
    expect(total(parseScrape(await registry.metrics()), 'distributed_lock_held', { lock: 'A.b' })).toBe(2);
    await leases[0]!.release();
    await all[0]!.close();
    const scrape = parseScrape(await registry.metrics());
    expect(total(scrape, 'distributed_lock_held', { lock: 'A.b' })).toBe(1);
    expect(total(scrape, 'distributed_lock_grants_total', { lock: 'A.b' })).toBe(2);
    await all[1]!.close();
    expect(total(parseScrape(await registry.metrics()), 'distributed_lock_held')).toBe(0);
  });

  it('that was cleared gets the metrics again', async () => {
    const registry = new Registry();
    for (let round = 0; round < 2; round++) {
      const locks = new Locks(memoryStore(), { telemetry: prometheus(registry), logger: false });
      await locks.using('key', () => undefined);
      expect(total(parseScrape(await registry.metrics()), 'distributed_lock_grants_total')).toBe(1);
      await locks.close();
      registry.clear();
    }
  });

  it('that has another metric of this name is refused', () => {
    const registry = new Registry();
    registry.registerMetric({ name: 'distributed_lock_held' } as never);
    expect(() => new Locks(memoryStore(), { telemetry: prometheus(registry) })).toThrow('already been registered');
  });
});

it('what is no telemetry is refused', () => {
  expect(() => new Locks(memoryStore(), { telemetry: [prometheus] as never })).toThrow('"telemetry" must be prometheus()');
});
