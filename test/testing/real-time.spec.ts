// The kit in real time: faults before a real server, and the whole sample app without its server.
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockLostError, Locks, StoreError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { DistributedLockTestingModule, faultyStore, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { useRedis } from '../stores/redis/setting.js';
import type { StockController } from '../../sample-app/src/stock/stock.controller.js';
import type { StocktakeService } from '../../sample-app/src/stocktake.service.js';

expect.extend(lockMatchers);

describe('faults before Redis', () => {
  const setting = useRedis();

  function open() {
    const locks = new Locks(faultyStore(redisStore({ options: setting.server.connection, requestTimeout: 5_000 })), { logger: false });
    const probe = new LockProbe(locks);
    setting.finally(async () => {
      probe.faults.clear();
      await locks.close();
      probe.onApplicationShutdown();
    });
    return { locks, probe, faults: probe.faults };
  }

  it('lose: another owner has the key at the server, for as long as the lease was', async () => {
    const { locks, probe, faults } = open();
    const lease = await locks.acquire('k', { keyTimeout: 60_000 });
    await faults.lose('k');
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(await lease.release()).toBe(false);
    expect(await setting.redis.get('k')).toMatch(/^someone-else@/);
    expect(await setting.redis.pttl('k')).toBeGreaterThan(0);
    expect(probe).toHaveLost('k');
  });
});

describe('the sample app, which has its locks in Redis', () => {
  const UNITS = 4;
  let directory: string;
  let app: INestApplication;
  let locks: LockProbe;
  let shop: StockController;
  let stocktake: StocktakeService;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'shop-'));
    // Nobody listens there. The app reads it when it is loaded.
    process.env.STORE_URL = 'redis://127.0.0.1:1';
    const { AppModule } = await import('../../sample-app/src/app.module.js');
    const { StockController } = await import('../../sample-app/src/stock/stock.controller.js');
    const { StockStore } = await import('../../sample-app/src/stock/stock.store.js');
    const { FileStockStore } = await import('../../sample-app/src/stock/file-stock.store.js');
    const builder = Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(StockStore)
      .useValue(new FileStockStore(directory));
    app = await (await DistributedLockTestingModule.replace(builder).compile()).createNestApplication().init();
    locks = app.get(LockProbe);
    shop = app.get(StockController);
    stocktake = app.get((await import('../../sample-app/src/stocktake.service.js')).StocktakeService);
  });
  afterAll(async () => {
    await app.close();
    rmSync(directory, { recursive: true });
  });

  it('fills its shelves under their locks', () => {
    expect(locks).toHaveLocked(/^shop:stock-/, { by: 'StockService.open', times: 3 });
  });

  it('sells no unit twice, and one at a time', async () => {
    await shop.fill({ sku: 'apple' }, { units: UNITS });
    locks.clear();
    const receipts = await Promise.all(Array.from({ length: 2 * UNITS }, () => shop.reduceStock({ sku: 'apple', units: 1 })));
    expect(receipts.filter(({ sold }) => sold)).toHaveLength(UNITS);
    expect(await shop.left({ sku: 'apple' })).toMatchObject({ left: 0 });
    expect(locks).toHaveLocked(/^shop:stock-/, { by: 'StockService.sell', times: 2 * UNITS });
    expect(locks).not.toHaveOverlapped(/^shop:stock-/);
    await eventually(() => expect(locks).toHoldNothing());
  });

  it('takes stock under a lock of the whole shop', async () => {
    // The cron of the app does so at any time, and nobody else for half a period then.
    await eventually(async () => {
      await stocktake.take();
      expect(locks).toHaveLocked('shop:stocktake-locks', { by: 'StocktakeService.take' });
    });
  });

  it('sells nothing while its locks fail', async () => {
    const refused = locks.faults.refuse('acquire');
    await expect(shop.reduceStock({ sku: 'apple', units: 1 })).rejects.toBeInstanceOf(StoreError);
    await refused;
  });
});
