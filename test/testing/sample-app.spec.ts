// The whole sample app, which has its locks in Redis, without a Redis.
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLockTestingModule, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';

expect.extend(lockMatchers);

const UNITS = 20;
const CUSTOMERS = 40;
let app: INestApplication;
let locks: LockProbe;
let url: string;
let directory: string;

beforeAll(async () => {
  // Nobody listens there. The app reads it when it is loaded.
  process.env.REDIS_URL = 'redis://127.0.0.1:1';
  process.env.SHOP_DIRECTORY = directory = mkdtempSync(join(tmpdir(), 'shop-'));
  process.env.SHOP_NAMESPACE = 'sample:';
  process.env.STOCKTAKE_SECONDS = '1';
  const { AppModule } = await import('../../sample-app/src/app.module.js');
  const { StockStore } = await import('../../sample-app/src/stock/stock.store.js');
  const { FileStockStore } = await import('../../sample-app/src/stock/file-stock.store.js');
  const builder = Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(StockStore)
    .useClass(FileStockStore);
  const module = await DistributedLockTestingModule.replace(builder).compile();
  app = module.createNestApplication();
  await app.listen(0);
  locks = app.get(LockProbe);
  url = `http://127.0.0.1:${(app.getHttpServer() as { address(): AddressInfo }).address().port}`;
});
afterAll(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

const sell = async (version: string) =>
  fetch(`${url}/stock/${version}/reduce`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sku: 'apple', units: 1 }),
  });
const left = async () => ((await (await fetch(`${url}/stock/apple`)).json()) as { left: number }).left;

it('fills its shelves under their locks', () => {
  expect(locks).toHaveLocked(/^sample:shop-stock-/, { by: 'StockRoomService.fill', times: 3 });
});

it('sells no unit twice, and one at a time', async () => {
  const answer = await fetch(`${url}/stock/apple`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ units: UNITS }),
  });
  expect(answer.status).toBe(200);
  locks.clear();
  const sales = await Promise.all(Array.from({ length: CUSTOMERS }, () => sell('lock')));
  const receipts = await Promise.all(sales.map((sale) => sale.json() as Promise<{ sold: boolean }>));
  expect(receipts.filter(({ sold }) => sold)).toHaveLength(UNITS);
  expect(await left()).toBe(0);
  expect(locks).toHaveLocked(/^sample:shop-stock-/, { by: 'LockedService.reduce', times: CUSTOMERS });
  expect(locks).not.toHaveOverlapped(/^sample:shop-stock-/);
  expect(locks).toHoldNothing();
});

it('takes stock under a lock of the whole shop', async () => {
  await eventually(() => expect(locks).toHaveLocked('sample:shop-stocktake-locks', { by: 'StocktakeService.take' }));
});

it('answers 423 or 503 while its locks fail', async () => {
  const refused = locks.faults.refuse('acquire');
  expect((await sell('lock')).status).toBe(503);
  await refused;
});
