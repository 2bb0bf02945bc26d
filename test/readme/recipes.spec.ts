import type { Provider } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { currentLease, DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { lastValueFrom, toArray } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { CatalogueService, Supplier } from './catalogue.js';
import { OrderService, Product } from './keys.js';
import { Mailer, ReportService } from './report.js';
import { OrderLinesService } from './siblings.js';
import { Database } from './stand-ins/database.js';
import { Gate } from './stand-ins/gate.js';
import { Shelf } from './stand-ins/shelf.js';
import { LedgerService } from './transactions.js';

const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function appWith(providers: Provider[], store = memoryStore()): Promise<TestingModule> {
  const imports = [DistributedLockModule.forRoot({ store, logger: false }), ScheduleModule.forRoot()];
  const app = await Test.createTestingModule({ imports, providers }).compile();
  await app.init();
  ends.push(() => app.close());
  return app;
}

describe('a cron', () => {
  let server: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
  });
  afterAll(() => server.stop());

  it('runs on one of three instances, also where the clock of one is behind', async () => {
    const sent: number[] = [];
    const apps = await Promise.all(
      [0, 1, 2].map((instance) => {
        const mailer: Mailer = { send: async () => void sent.push(instance) };
        const store = redisStore({ options: server.connection, requestTimeout: 5000 });
        return appWith([ReportService, { provide: Mailer, useValue: mailer }], store);
      }),
    );
    const ended: string[] = [];
    for (const app of apps) {
      app.get(Locks).on('released', () => ended.push('sent'));
      app.get(Locks).on('timeout', () => ended.push('skipped'));
      const before = ended.length;
      for (const job of app.get(SchedulerRegistry).getCronJobs().values()) void job.fireOnTick();
      await eventually(() => ended.length > before); // the first one's job has ended when the next one's clock strikes
    }
    expect(ended).toEqual(['sent', 'skipped', 'skipped']);
    await expect(apps[1]!.get(ReportService).sendReport()).resolves.toBeUndefined(); // skipped, and no error
    expect(sent).toEqual([0]);
    expect(await redis.pttl('ReportService.sendReport-locks')).toBeGreaterThan(50_000);
  });
});

describe('a transaction', () => {
  type Way = 'reduce' | 'reduceToo' | 'reduceWrongly';

  /** Two calls; the first one's commit waits until the second has come to its own, or is seen to wait for the lock. */
  async function leftOfTwo(way: Way, arrivedBeforeCommit: number): Promise<number | undefined> {
    const app = await appWith([LedgerService, Database]);
    const db = app.get(Database);
    db.stock('apple', 2);
    const calls = Promise.all([app.get(LedgerService)[way]('apple'), app.get(LedgerService)[way]('apple')]);
    await eventually(() => db.commits.arrived === arrivedBeforeCommit);
    db.commits.open();
    await calls;
    return db.unitsOf('apple');
  }

  it('inside the lock is committed before the next call enters', async () => {
    expect(await leftOfTwo('reduce', 1)).toBe(0);
  });

  it('of a decorator below the lock, too', async () => {
    expect(await leftOfTwo('reduceToo', 1)).toBe(0);
  });

  it('of a decorator above the lock loses updates', async () => {
    expect(await leftOfTwo('reduceWrongly', 2)).toBe(1);
  });
});

describe('keys', () => {
  const order = (note?: string) => ({ id: 42, customer: { id: 'C1' }, note });
  const digest = '[0-9a-f]{32}';

  async function keysOf(work: (orders: OrderService) => Promise<unknown>): Promise<string[]> {
    const app = await appWith([OrderService]);
    const keys: string[] = [];
    app.get(Locks).on('acquired', ({ key }) => keys.push(key));
    await work(app.get(OrderService));
    return keys;
  }

  it('are those that the comments name', async () => {
    const keys = await keysOf(async (orders) => {
      await orders.importAll();
      await orders.ship(order());
      await orders.invoice(order(), 2030);
      await orders.reprice(new Product('apple', new Date()));
    });
    expect(keys).toEqual([
      'shop-OrderService.importAll-locks',
      'shop-order-42-locks',
      expect.stringMatching(`^shop-customer-${digest}-locks$`),
      expect.stringMatching(`^shop-product-${digest}-locks$`),
    ]);
  });

  it('are equal for equal values, and only for these', async () => {
    const keys = await keysOf(async (orders) => {
      await orders.invoice(order('a note'), 2030);
      await orders.invoice(order('another'), 2030);
      await orders.invoice(order(), 2031);
      await orders.reprice(new Product('apple', new Date(0)));
      await orders.reprice(new Product('apple', new Date(1)));
      await orders.reprice(new Product('pear', new Date(1)));
    });
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2, 3, 3, 5]);
  });
});

describe('onTimeout', () => {
  it('gives another result where the key is taken', async () => {
    const loading = new Gate();
    const supplier: Supplier = {
      async load() {
        await loading.pass();
        return ['plum'];
      },
    };
    const catalogue = (await appWith([CatalogueService, { provide: Supplier, useValue: supplier }])).get(CatalogueService);
    const first = catalogue.rebuild();
    await eventually(() => loading.arrived === 1);
    await expect(catalogue.rebuild()).resolves.toEqual(['apple', 'pear']);
    loading.open();
    await expect(first).resolves.toEqual(['plum']);
  });
});

describe('streams', () => {
  it('hold the lock until they end, and their consumers are outside of the call chain', async () => {
    const app = await appWith([CatalogueService, { provide: Supplier, useValue: undefined }]);
    const [locks, catalogue] = [app.get(Locks), app.get(CatalogueService)];
    const events: string[] = [];
    locks.on('acquired', () => events.push('taken'));
    locks.on('released', () => events.push('released'));

    const watched = catalogue.watch();
    expect(events).toEqual([]);
    await expect(lastValueFrom(watched.pipe(toArray()))).resolves.toEqual(['apple', 'pear']);
    for await (const item of catalogue.list()) {
      expect(currentLease()).toBeUndefined();
      expect(await locks.tryAcquire('catalogue-locks')).toBeNull();
      events.push(item);
    }
    expect(events).toEqual(['taken', 'released', 'taken', 'apple', 'pear', 'released']);
  });
});

describe('siblings under one hold', () => {
  it('are safe one after the other, and not side by side', async () => {
    const app = await appWith([OrderLinesService, Shelf]);
    const [lines, shelf] = [app.get(OrderLinesService), app.get(Shelf)];
    await shelf.write('apple', 10);
    await Promise.all([lines.takeTwo('apple'), lines.take('apple'), lines.take('apple')]);
    expect(await shelf.read('apple')).toBe(6);
    await lines.takeTwoAtOnce('apple');
    expect(await shelf.read('apple')).toBe(5);
  });
});
