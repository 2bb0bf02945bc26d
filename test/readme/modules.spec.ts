import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locks, locksToken } from 'nestjs-distributed-lock';
import type * as Modules from './modules.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

const quiet = { logger: false, abortOnError: false } as const;

const setting = useRedisOfEnv();
let modules: typeof Modules;

beforeAll(async () => {
  modules = await import('./modules.js'); // it reads REDIS_URL
});

it('the module takes its options from a factory', async () => {
  const app = await NestFactory.createApplicationContext(modules.LockModule, quiet);
  const locks = app.get(Locks);
  expect(locks.store).toMatchObject({ name: 'redis', requestTimeout: 500 });
  await locks.using('order:42', async (lease) => {
    expect(await setting.redis.get('shop:order:42')).toBe(lease.owner);
    expect(await setting.redis.pttl('shop:order:42')).toBeGreaterThan(11_000);
  });
  await app.close();
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
