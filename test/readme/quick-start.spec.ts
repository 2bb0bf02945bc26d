// The apps that the documents show, on one Redis.
import { Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { locksToken } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { Redis } from 'ioredis';
import { register } from 'prom-client';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { parseScrape, total } from '../telemetry/scrape.js';
import { startSdk } from '../telemetry/sdk.js';
import { classicLock, classicUnlock } from './classic-recipe.js';
import { OrderService } from './keys.js';
import type * as Modules from './modules.js';
import { Database, main } from './standby.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import { Stock } from './stock.js';
import { StockService } from './stock.service.js';
import type * as Telemetry from './telemetry.js';

// #region unit-test
it('sells no apple that is not there', async () => {
  const module = await Test.createTestingModule({
    imports: [DistributedLockModule.forRoot({ store: memoryStore() })],
    providers: [StockService, { provide: Stock, useValue: { read: async () => 0 } }],
  }).compile();
  await expect(module.get(StockService).sell('apple')).rejects.toThrow('Sold out'); // locked, in memory
  await module.close();
});
// #endregion

const setting = useRedisOfEnv();
const quiet = { logger: false, abortOnError: false } as const;
let modules: typeof Modules;
let telemetry: typeof Telemetry;
beforeAll(async () => {
  [modules, telemetry] = [await import('./modules.js'), await import('./telemetry.js')]; // they read REDIS_URL
});

it('never oversells on two instances, and locks by a readable key', async () => {
  const { AppModule } = await import('./app.module.js'); // it reads REDIS_URL
  const open = () => NestFactory.createApplicationContext(AppModule, { logger: false });
  const apps = [await open(), await open()];
  const keys = new Set<string>();
  for (const app of apps) app.get(Locks).on('acquired', ({ key }) => keys.add(key));
  const stock = apps[0]!.get(Stock);
  await stock.write('apple', 5);

  const results = await Promise.allSettled(Array.from({ length: 8 }, (_, index) => apps[index % 2]!.get(StockService).sell('apple')));

  const reasons = results.flatMap((result) => (result.status === 'rejected' ? String(result.reason) : []));
  expect(reasons).toEqual(Array(3).fill('Error: Sold out'));
  expect(await stock.read('apple')).toBe(0);
  expect([...keys]).toEqual(['stock-apple-locks']);
  for (const app of apps) await app.close();
});

it('docs/keys.md: the classic recipe keeps a locked method out, and is kept out by one', async () => {
  const { redis } = setting;
  const imports = [DistributedLockModule.forRoot({ store: redisStore({ url: setting.url }), logger: false })];
  const app = await Test.createTestingModule({ imports, providers: [OrderService] }).compile();
  const ship = () => app.get(OrderService).ship({ id: 42, customer: { id: 'C-1' } });
  expect(await classicLock(redis, 'me')).toBe(true);
  await expect(ship()).rejects.toThrow(LockTimeoutError);
  expect(await classicUnlock(redis, 'me')).toBe(true);
  await expect(ship()).resolves.toBe('42 is on its way');

  const lease = await app.get(Locks).acquire('shop-order-42-locks');
  expect(await classicLock(redis, 'me')).toBe(false);
  expect(await classicUnlock(redis, 'me')).toBe(false);
  expect(await lease.release()).toBe(true);
  expect(await classicLock(redis, 'me')).toBe(true);
  await app.close();
});

it('the module takes its options from a factory', async () => {
  const app = await NestFactory.createApplicationContext(modules.LockModule, quiet);
  const locks = app.get(Locks);
  expect(locks.store).toHaveProperty('requestTimeout', 2_000);
  await locks.using('order:42', async (lease) => {
    expect(await setting.redis.get('shop:order:42')).toBe(lease.owner);
    expect(await setting.redis.pttl('shop:order:42')).toBeGreaterThan(11_000);
  });
  await app.close();
});

it('the module borrows a client of the app, and leaves it open', async () => {
  const app = await NestFactory.createApplicationContext(modules.SharedClientModule, quiet);
  const client = app.get<Redis>('REDIS', { strict: false });
  await app.get(Locks).using('order:42', async (lease) => expect(await client.get('order:42')).toBe(lease.owner));
  await app.close();
  expect(await client.ping()).toBe('PONG');
  client.disconnect();
});

it('the module has several stores under several names', async () => {
  const { CacheService, TwoStoresModule } = modules;
  @Module({ imports: [TwoStoresModule], providers: [CacheService] })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, quiet);
  const acquired: string[] = [];
  app.get(Locks).on('acquired', ({ key }) => acquired.push(`default: ${key}`));
  app.get<Locks>(locksToken('local')).on('acquired', ({ key }) => acquired.push(`local: ${key}`));
  const cache = app.get(CacheService);
  await expect(cache.warmUp()).resolves.toBe('warm');
  await expect(cache.evict('prices')).resolves.toBe('evicted');
  await app.get(Locks).using('order:42', async () => undefined);
  expect(acquired).toEqual(['local: CacheService.warmUp-locks', 'local: cache:prices', 'default: order:42']);
  await app.close();
});

beforeEach(() => register.clear());

it('an app has the metrics of its locks at /metrics', async () => {
  const app = await NestFactory.create(telemetry.MeasuredModule, quiet);
  await app.listen(0, '127.0.0.1');
  await app.get(Locks).using('order:42', () => undefined, { label: 'Orders.pay' });
  const response = await fetch(`${await app.getUrl()}/metrics`);
  expect(response.headers.get('content-type')).toContain('version=0.0.4');
  expect(total(parseScrape(await response.text()), 'distributed_lock_grants_total', { lock: 'Orders.pay', store: 'redis' })).toBe(1);
  await app.close();
});

it('an app has metrics and spans for OpenTelemetry', async () => {
  const sdk = startSdk();
  const app = await NestFactory.createApplicationContext(telemetry.TracedModule, quiet);
  await app.get(Locks).using('order:42', () => undefined, { label: 'Orders.pay' });
  await app.close();
  expect(sdk.spans().map(({ name }) => name)).toEqual(['hold Orders.pay']);
  expect(total(await sdk.scrape(), 'distributed_lock_grants_total', { lock: 'Orders.pay' })).toBe(1);
  await sdk.stop();
});

it('a preloaded standby listens once it leads, writes with the token of its term, and ends by SIGTERM with the key released', async () => {
  Logger.overrideLogger(false);
  const { PORT } = process.env;
  process.env.PORT = String(await freePort());
  const locks = new Locks(redisStore({ url: setting.url }));
  const stranger = (await locks.tryAcquire('orders-leader', { keyTimeout: 60_000 }))!;
  const listeners = process.listeners('SIGINT');
  const ended = main();
  await eventually(async () => (await setting.redis.keys('*orders-leader*:queue*')).length > 0); // it waits, preloaded
  const place = () => fetch(`http://127.0.0.1:${process.env.PORT}/orders`, { method: 'POST' });
  await expect(place()).rejects.toThrow('fetch failed');
  await stranger.release();
  const { status } = await eventually(place);
  const leader = await locks.leaderElection('orders').leader();
  expect([status, Database.rows]).toEqual([201, [{ order: 'an apple', token: leader!.fencingToken }]]);

  process.emit('SIGTERM');
  await ended;
  await expect(place()).rejects.toThrow('fetch failed');
  await expect(locks.leaderElection('orders').leader()).resolves.toBeNull();
  for (const added of process.listeners('SIGINT')) if (!listeners.includes(added)) process.off('SIGINT', added);
  if (PORT === undefined) delete process.env.PORT;
  else process.env.PORT = PORT;
  await locks.close();
});

it('the dashboard of the documents is served to who is signed in', async () => {
  const { AppModule, withPassword } = await import('./dashboard.js');
  const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true });
  await app.listen(0, '127.0.0.1');
  const page = await fetch(`${await app.getUrl()}/ops/locks`);
  expect([page.status, await page.text()]).toEqual([200, expect.stringMatching(/^<!doctype html>/i)]);
  await app.close();
  expect(withPassword).toThrow(/"password" must be/);
});
