import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import { StockService } from './stock.service.js';

// #region unit-test
import { memoryStore } from 'nestjs-distributed-lock/memory';

it('sells an apple', async () => {
  const module = await Test.createTestingModule({
    imports: [DistributedLockModule.forRoot({ store: memoryStore() })],
    providers: [StockService, { provide: Redis, useValue: { get: async () => '3', set: async () => 'OK' } }],
  }).compile();
  expect(await module.get(StockService).reduce('apple', 1)).toBe(2); // locked, in memory
  await module.close();
});
// #endregion

describe('the quick start', () => {
  useRedisOfEnv();

  it('never oversells on two instances, and locks by a readable key', async () => {
    const { AppModule } = await import('./app.module.js'); // it reads REDIS_URL
    const open = () => NestFactory.createApplicationContext(AppModule, { logger: false });
    const apps = [await open(), await open()];
    const keys = new Set<string>();
    for (const app of apps) app.get(Locks).on('acquired', ({ key }) => keys.add(key));
    await apps[0]!.get(Redis).set('stock:apple', 5);

    const buyers = Array.from({ length: 8 }, (_, index) => apps[index % 2]!.get(StockService).reduce('apple', 1));
    const results = await Promise.allSettled(buyers);

    expect(results.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])).sort()).toEqual([0, 1, 2, 3, 4]);
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? String(result.reason) : []));
    expect(reasons).toEqual(Array(3).fill('Error: Sold out'));
    expect([...keys]).toEqual(['stock-apple-locks']);
    for (const app of apps) {
      await app.close();
      await app.get(Redis).quit();
    }
  });
});
