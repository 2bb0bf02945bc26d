import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, DistributedLockModule, Locks, locksToken } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import { startRedis } from '../support/redis-server.js';
import type * as Modules from './modules.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

const quiet = { logger: false, abortOnError: false } as const;

const setting = useRedisOfEnv();
let modules: typeof Modules;

beforeAll(async () => {
  modules = await import('./modules.js'); // it reads REDIS_URL
});

describe('the module', () => {
  it('takes its options from a factory', async () => {
    const app = await NestFactory.createApplicationContext(modules.LockModule, quiet);
    const locks = app.get(Locks);
    expect(locks.store).toMatchObject({ name: 'redis', requestTimeout: 500 });
    await locks.using('order:42', async (lease) => {
      expect(await setting.redis.get('shop:order:42')).toBe(lease.owner);
      expect(await setting.redis.pttl('shop:order:42')).toBeGreaterThan(9000);
    });
    await app.close();
  });

  it('has several stores under several names', async () => {
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
    expect(acquired).toEqual(['local: CacheService.warmUp-locks', 'local: cache:prices']);
    await app.get(Locks).using('order:42', async () => undefined);
    expect(acquired.at(-1)).toBe('default: order:42');
    await app.close();
  });
});

describe('LockExceptionFilter', () => {
  async function answerOf(locks: ReturnType<typeof DistributedLockModule.forRoot>, hold: boolean): Promise<Response> {
    @Controller()
    class StockController {
      @Get()
      @DistributedLock({ value: 'stock', waitTimeout: 0 })
      async stock(): Promise<string> {
        return 'full';
      }
    }
    @Module({ imports: [locks, modules.FilterModule], controllers: [StockController] })
    class AppModule {}
    const app = await NestFactory.create(AppModule, quiet);
    const server = (await app.listen(0, '127.0.0.1')) as Server;
    if (hold) await app.get(Locks).acquire('stock-locks');
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { headers: { connection: 'close' } });
    await app.close();
    return answer;
  }

  it('lets a locked handler answer', async () => {
    const answer = await answerOf(DistributedLockModule.forRoot({ store: memoryStore() }), false);
    expect([answer.status, await answer.text()]).toEqual([200, 'full']);
  });

  it('answers 423 where the key stays taken', async () => {
    const answer = await answerOf(DistributedLockModule.forRoot({ store: memoryStore() }), true);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([423, '1']);
    expect(await answer.json()).toMatchObject({ code: 'LOCK_TIMEOUT' });
  });

  it('answers 503 where the store is out of reach', async () => {
    const server = await startRedis();
    await server.stop();
    const store = redisStore({ options: { ...server.connection, disconnectTimeout: 100 }, requestTimeout: 200 });
    const answer = await answerOf(DistributedLockModule.forRoot({ store }), false);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.json()).toMatchObject({ code: 'LOCK_STORE' });
  });
});
