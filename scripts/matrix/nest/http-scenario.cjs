// Two Nest applications on Express in plain JavaScript, a locked controller over a locked service, one after the other on each kind of store.
// They end by themselves: what `close` left behind would keep the process alive.
const assert = require('node:assert/strict');
const { setTimeout: sleep } = require('node:timers/promises');

function decorate(target, method, ...decorators) {
  const { prototype } = target;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method);
  Object.defineProperty(
    prototype,
    method,
    decorators.reduce((current, decorator) => decorator(prototype, method, current) ?? current, descriptor),
  );
}

// Programs run side by side on one server.
const NAMESPACE = `http-${process.pid}:`;

function createStockModule({ common, core, lock }, imports, { shelf, served }) {
  const { APP_FILTER } = core;
  const { Controller, Inject, Injectable, Module, Param, Post } = common;
  const { currentLease, DistributedLock, LockExceptionFilter } = lock;

  const patient = { keyTimeout: 60_000, retryCount: 0 };
  class StockService {
    /** Reads and writes back with a pause between: an overlap loses an update. */
    async reduce(sku) {
      const left = shelf[sku] - 1;
      const { key, fencingToken } = currentLease();
      await sleep(10);
      shelf[sku] = left;
      return { sku, left, key, fencingToken };
    }
  }
  decorate(StockService, 'reduce', DistributedLock({ value: 'stock', key: (sku) => sku, ...patient }));
  Injectable()(StockService);

  class StockController {
    async sell(desk, sku) {
      assert.equal(served.has(desk), false, 'two calls held one key');
      served.add(desk);
      const sold = { desk: currentLease().key, ...(await this.stock.reduce(sku)) };
      served.delete(desk);
      return sold;
    }

    async count() {
      return shelf;
    }
  }
  decorate(StockController, 'sell', Post('sell/:desk/:sku'), DistributedLock({ value: 'desk', key: (desk) => desk, ...patient }));
  decorate(StockController, 'count', DistributedLock({ value: 'inventory', retryCount: 1 }), Post('count'));
  Param('desk')(StockController.prototype, 'sell', 0);
  Param('sku')(StockController.prototype, 'sell', 1);
  Inject(StockService)(StockController.prototype, 'stock');
  Controller()(StockController);

  class AppModule {}
  Module({
    imports,
    controllers: [StockController],
    providers: [StockService, { provide: APP_FILTER, useClass: LockExceptionFilter }],
  })(AppModule);
  return AppModule;
}

async function sellThroughTwoApps(parts, stores) {
  const shelf = { apple: 10, pear: 10 };
  const shared = { shelf, served: new Set() };
  const create = (...imports) =>
    parts.core.NestFactory.create(createStockModule(parts, imports, shared), { logger: false, abortOnError: false });
  await assert.rejects(create(), /DistributedLockModule\.forRoot/, 'an application without forRoot must not boot');
  const apps = [];
  for (const store of stores) apps.push(await create(parts.lock.DistributedLockModule.forRoot({ store, namespace: NAMESPACE })));
  const acquired = [];
  for (const app of apps) app.get(parts.lock.Locks).on('acquired', ({ key }) => void acquired.push(key));
  await Promise.all(apps.map((app) => app.listen(0, '127.0.0.1')));
  const urls = await Promise.all(apps.map((app) => app.getUrl()));
  const post = async (index, path) => {
    const response = await fetch(`${urls[index % urls.length]}/${path}`, { method: 'POST' });
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() };
  };

  const orders = ['apple', 'pear', 'apple', 'apple', 'apple', 'pear', 'apple', 'apple'].map((sku, index) => [
    index < 4 ? 'left' : 'right',
    sku,
  ]);
  const sold = await Promise.all(orders.map(([desk, sku], index) => post(index, `sell/${desk}/${sku}`)));
  assert.deepEqual(shelf, { apple: 4, pear: 8 }, 'an update was lost: two calls held one key');
  const keys = orders.map(([desk, sku]) => [`${NAMESPACE}desk-${desk}-locks`, `${NAMESPACE}stock-${sku}-locks`]);
  assert.deepEqual(
    sold.map(({ body }) => [body.desk, body.key]),
    keys,
  );
  assert.deepEqual(acquired.splice(0).sort(), keys.flat().sort(), 'a call must take each of its keys once');

  const lease = await apps[0].get(parts.lock.Locks).acquire('inventory-locks', { keyTimeout: 60_000 });
  const refused = await post(1, 'count');
  assert.deepEqual([refused.status, refused.retryAfter, refused.body.code], [423, '1', 'LOCK_TIMEOUT']);
  await lease.release();
  assert.deepEqual(await post(1, 'count'), { status: 201, retryAfter: null, body: shelf });

  for (const app of apps) await app.close();
}

module.exports = async function scenario({ common, core, lock, memoryStore, redisStore }) {
  process.exitCode = 1; // until the end is reached: a promise that nobody settles lets a process end, too
  const memory = memoryStore();
  await sellThroughTwoApps({ common, core, lock }, [memory, memory]);
  const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  await sellThroughTwoApps({ common, core, lock }, [redisStore({ url }), redisStore({ url })]);
  process.exitCode = 0;
};
