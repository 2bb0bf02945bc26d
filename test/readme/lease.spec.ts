import type { Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { DistributedLockModule, LockLostError, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { classicLock, classicUnlock } from './classic-recipe.js';
import { TillService } from './errors.js';
import { LockMetrics } from './events.js';
import { FencedStockService } from './fenced-stock.js';
import { OrderService } from './keys.js';
import { PriceListService, Printer } from './price-list.js';
import { Gate } from './stand-ins/gate.js';
import { SqlTable } from './stand-ins/sql-table.js';

let server: RedisServer;
let redis: Redis;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
beforeEach(() => redis.flushall());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(() => server.stop());

async function appWith(...providers: Provider[]): Promise<TestingModule> {
  const store = redisStore({ options: server.connection, requestTimeout: 500 });
  const app = await Test.createTestingModule({ imports: [DistributedLockModule.forRoot({ store, logger: false })], providers }).compile();
  await app.init();
  ends.push(() => app.close());
  return app;
}

/** Deletes the lock's key, as an eviction, a failover or somebody's hand would. */
async function loseKey(pattern: string): Promise<void> {
  const keys = await eventually(async () => {
    const found = await redis.keys(pattern);
    expect(found).toHaveLength(1);
    return found;
  });
  await redis.del(keys);
}

describe('the fencing token at the resource', () => {
  it('refuses the write of a holder that lost its lease without knowing', async () => {
    const table = new SqlTable([{ sku: 'apple', units: 7, fence: 0 }]);
    const stock = (await appWith(FencedStockService, { provide: SqlTable, useValue: table })).get(FencedStockService);

    const first = expect(stock.recount('apple')).rejects.toThrow('stale');
    await eventually(() => stock.counting.arrived === 1);
    await loseKey('stocktake-*-locks');
    const second = stock.recount('apple');
    await eventually(() => stock.counting.arrived === 2);
    stock.counting.admit(1);
    await expect(second).resolves.toBe(5);
    const written = { ...table.rows[0] };
    expect(written).toMatchObject({ units: 5, fence: expect.any(Number) });
    stock.counting.open();
    await first;
    expect(table.rows).toEqual([written]);
    expect(table.updates).toHaveLength(2);
  });
});

describe('the signal of a lease', () => {
  it('ends a request of the method when the lease is lost, and tells listeners', async () => {
    const served: string[] = [];
    const shop = createServer((request, response) => {
      served.push(request.url ?? '');
      if (request.url === '/first') response.end();
    });
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    ends.push(() => shop.close().closeAllConnections());
    const { port } = shop.address() as AddressInfo;
    const app = await appWith(PriceListService, LockMetrics, { provide: Printer, useValue: undefined });
    const metrics = app.get(LockMetrics);

    const urls = ['first', 'second', 'third'].map((path) => `http://127.0.0.1:${port}/${path}`);
    const published = expect(app.get(PriceListService).publish(urls, '[]')).rejects.toThrow(LockLostError);
    await eventually(() => served.length === 2);
    await loseKey('shop-prices-locks');
    await published;
    expect(served).toEqual(['/first', '/second']);
    expect(metrics.losses).toEqual(['shop-prices-locks']);
    expect(metrics.waits).toEqual([expect.any(Number)]);
  });

  it('is not needed where each step asks before it begins', async () => {
    const printing = new Gate();
    const printed: string[] = [];
    const printer: Printer = {
      async print(label) {
        await printing.pass();
        printed.push(label);
      },
    };
    const app = await appWith(PriceListService, LockMetrics, { provide: Printer, useValue: printer });
    const metrics = app.get(LockMetrics);

    const done = expect(app.get(PriceListService).printLabels(['apple', 'pear'])).rejects.toThrow(LockLostError);
    await eventually(() => printing.arrived === 1);
    await loseKey('shop-labels-locks');
    await eventually(() => metrics.losses.length === 1);
    printing.open();
    await done;
    expect(printed).toEqual(['apple']);

    await app.get(PriceListService).printLabels(['pear', 'plum']);
    expect(printed).toEqual(['apple', 'pear', 'plum']);
  });
});

describe('the four kinds of error', () => {
  /** A till whose stock is reduced under a lock, by the work that is given. */
  async function tillWith(work: () => Promise<number>): Promise<{ till: TillService; locks: Locks }> {
    const locks = (await appWith()).get(Locks);
    return { locks, till: new TillService({ reduce: () => locks.using('stock', work, { waitTimeout: 0 }) }) };
  }

  it('tell success, contention, and an error of the method itself', async () => {
    await expect((await tillWith(async () => 4)).till.buy('apple')).resolves.toBe('4 left');
    const own = new Error('Sold out');
    await expect((await tillWith(() => Promise.reject(own))).till.buy('apple')).rejects.toBe(own);
    await redis.set('stock', 'somebody else', 'PX', 30_000);
    await expect((await tillWith(async () => 4)).till.buy('apple')).resolves.toBe('busy');
  });

  it('tell a loss, with the result', async () => {
    const gate = new Gate();
    const { till } = await tillWith(async () => {
      await gate.pass();
      return 4;
    });
    const bought = till.buy('apple');
    await loseKey('stock');
    gate.open();
    await expect(bought).resolves.toBe('to be checked: 4 left');
  });

  it('tell an outage', async () => {
    const { till } = await tillWith(async () => 4);
    await server.kill();
    await expect(till.buy('apple')).resolves.toBe('closed');
    await server.restart();
    await eventually(() => redis.ping());
  });
});

it('a key that another library keeps as a hash is an error at once, and no lock', async () => {
  const locks = (await appWith()).get(Locks);
  await redis.hset('stock', 'a thread', 1);
  await expect(locks.acquire('stock', { waitTimeout: Infinity })).rejects.toMatchObject({ name: 'StoreError', transient: false });
});

describe('the classic recipe on the same key', () => {
  const order = { id: 42, customer: { id: 'C1' } };

  it('keeps a locked method out, and is kept out by one', async () => {
    const app = await appWith(OrderService);
    expect(await classicLock(redis, 'me')).toBe(true);
    await expect(app.get(OrderService).ship(order)).rejects.toThrow(LockTimeoutError);
    expect(await classicUnlock(redis, 'me')).toBe(true);
    await expect(app.get(OrderService).ship(order)).resolves.toBe('42 is on its way');

    const lease = await app.get(Locks).acquire('shop-order-42-locks');
    expect(await classicLock(redis, 'me')).toBe(false);
    expect(await classicUnlock(redis, 'me')).toBe(false);
    expect(await lease.release()).toBe(true);
    expect(await classicLock(redis, 'me')).toBe(true);
  });
});
