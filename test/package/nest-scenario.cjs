// A Nest application in plain JavaScript: the decorators are applied by hand. `decorate` and `module` may come from two copies of the library.
const assert = require('node:assert/strict');
const { setTimeout: sleep } = require('node:timers/promises');

function decorate(target, method, decorator) {
  const { prototype } = target;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method);
  Object.defineProperty(prototype, method, decorator(prototype, method, descriptor) ?? descriptor);
}

/** Reads and writes back with a pause between: an overlap loses an update. */
function stockService({ Injectable, DistributedLock, currentLease }, shelf) {
  class StockService {
    async reduce(sku, amount) {
      const left = shelf[sku];
      const { fencingToken } = currentLease();
      await sleep(10);
      shelf[sku] = left - amount;
      return { fencingToken, left: shelf[sku] };
    }
  }
  decorate(
    StockService,
    'reduce',
    DistributedLock({ prefix: 'shop-', value: 'stock', paramLock: ['0'], keyTimeout: 10_000, retryCount: 0 }),
  );
  Injectable()(StockService);
  return StockService;
}

module.exports = async function scenario({ Injectable, Module, NestFactory, DistributedLockModule, memoryStore, copies }) {
  const shelf = { apple: 10, pear: 10 };
  const services = copies.map((copy) => stockService({ Injectable, ...copy }, shelf));
  const boot = (imports) => {
    class AppModule {}
    Module({ imports, providers: services })(AppModule);
    return NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
  };

  await assert.rejects(boot([]), /DistributedLockModule\.forRoot/, 'an application without forRoot must not boot');

  const app = await boot([DistributedLockModule.forRoot({ store: memoryStore() })]);
  const stocks = services.map((service) => app.get(service));
  const calls = Array.from({ length: 8 }, (_, index) => stocks[index % stocks.length]);
  const apples = await Promise.all(calls.map((stock) => stock.reduce('apple', 1)));
  assert.equal(shelf.apple, 2, 'an update was lost: two calls held one key');
  assert.equal(new Set(apples.map(({ fencingToken }) => fencingToken)).size, calls.length, 'two calls had one fencing token');
  assert.deepEqual((await stocks[0].reduce('pear', 4)).left, 6);
  await app.close();
};
