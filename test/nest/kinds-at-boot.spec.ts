import {
  DistributedLock,
  DistributedLockModule,
  LockConfigError,
  ReadLock,
  Semaphore,
  UnsupportedPrimitiveError,
  WriteLock,
  type LockStore,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';
import { Log } from './log.js';
import { shopWith } from './shop-with.js';
import { KINDS } from './kinds.js';

const dist = DistributedLock as (options: object) => MethodDecorator;
const read = ReadLock as (options: object) => MethodDecorator;
const write = WriteLock as (options: object) => MethodDecorator;
const semaphore = (options: object) => Semaphore({ permits: 5, ...options }) as MethodDecorator;
const sku = (of: string) => of;
const STOCK = { value: 'stock' };

const errorOf = (booting: Promise<unknown>) => booting.then(String, (reason: unknown) => reason);

describe('one key as two kinds of lock', () => {
  it.each<[string, MethodDecorator, MethodDecorator, RegExp]>([
    [
      'a mutex and a semaphore',
      dist(STOCK),
      semaphore(STOCK),
      /"stock-locks" would be a semaphore, but is a mutex by @DistributedLock\(\) on/,
    ],
    ['a mutex and a write lock', write(STOCK), dist(STOCK), /@DistributedLock\(\) on Shop\.two: .*@WriteLock\(\)/],
    ['a semaphore and a read lock', semaphore(STOCK), read(STOCK), /@ReadLock\(\) on Shop\.two: .*@Semaphore\(\)/],
    ['prefix and value, cut elsewhere', dist({ prefix: 'sto', value: 'ck' }), read({ prefix: 'st', value: 'ock' }), /"stock-locks"/],
    ['parts by a key function', dist({ value: 'stock', key: sku }), read({ value: 'stock', key: sku }), /"stock-…-locks"/],
    ['parts by paramLock', dist({ value: 'stock', paramLock: true }), read({ value: 'stock', paramLock: true }), /"stock-…-locks"/],
    ['parts by paths', dist({ value: 'stock', paramLock: ['0'] }), semaphore({ value: 'stock', paramLock: ['0'] }), /"stock-…-locks"/],
  ])('is refused at boot: %s', async (_what, first, second, message) => {
    const error = await errorOf(boot({ providers: [shopWith(first, second)] }, { namespace: '' }));
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(message));
  });

  it('is refused for two locks of one method that have the default key', async () => {
    class Shop {
      @Semaphore({ permits: 2 })
      @DistributedLock()
      async buy() {}
    }
    await expect(boot({ providers: [Shop] })).rejects.toThrow(/the key "Shop\.buy-locks" would be/);
  });

  it('is refused in two classes, and with the namespace in the message', async () => {
    class First {
      @WriteLock({ value: 'stock' })
      async one() {}
    }
    class Second {
      @Semaphore({ value: 'stock', permits: 1 })
      async two() {}
    }
    const error = await errorOf(boot({ providers: [First, Second] }, { namespace: 'eu:' }));
    expect(error).toHaveProperty(
      'message',
      expect.stringMatching(/on Second\.two: the key "eu:stock-locks".*@WriteLock\(\) on First\.one/),
    );
  });

  it.each<[string, MethodDecorator, MethodDecorator]>([
    ['read and write', read({ value: 'stock' }), write({ value: 'stock' })],
    ['different keys', dist({ value: 'stock' }), read({ value: 'price' })],
    ['the default keys', dist({}), semaphore({})],
    ['with and without parts', dist({ value: 'stock' }), read({ value: 'stock', key: sku })],
    ['parts of different sorts', dist({ value: 'stock', paramLock: true }), read({ value: 'stock', key: sku })],
    ['different stores', dist({ value: 'stock' }), read({ value: 'stock', store: 'other' })],
  ])('is not: %s', async (_what, first, second) => {
    const other = DistributedLockModule.forRoot({ name: 'other', store: memoryStore(), logger: false });
    await boot({ imports: [other], providers: [shopWith(first, second)] });
  });

  it('is refused in two modules of one store with one namespace, and not with two', async () => {
    const store = memoryStore();
    const Shop = shopWith(dist({ value: 'stock' }), read({ value: 'stock', store: 'other' }));
    const other = (namespace: string) => DistributedLockModule.forRoot({ name: 'other', store, namespace, logger: false });
    await boot({ imports: [other('other:')], providers: [Shop] }, { store });
    await expect(boot({ imports: [other('')], providers: [Shop] }, { store })).rejects.toThrow(/the key "stock-locks"/);
  });
});

describe('a store without a kind of lock', () => {
  it.each(KINDS.slice(1))('is refused at boot by $name, which names the method', async ({ name, lock }) => {
    class Shop {
      @lock()
      async buy() {}
    }
    const { mutex } = memoryStore();
    const store: LockStore = {
      name: 'plain',
      requestTimeout: 100,
      mutex,
      supports: (feature) => feature === 'mutex',
      close: async () => undefined,
    };
    const error = await errorOf(boot({ providers: [Shop] }, { store }));
    expect(error).toBeInstanceOf(UnsupportedPrimitiveError);
    expect(error).toHaveProperty('message', expect.stringContaining(`${name}() on Shop.buy: The plain store has no `));
  });
});

describe.each(KINDS)('words about $name', ({ name, lock }) => {
  class Base {
    @lock({ value: 'buy' })
    async buy(): Promise<unknown> {
      return undefined;
    }
  }

  it('name it where an instance was made with new', async () => {
    await expect(new Base().buy()).rejects.toThrow(`${name}() on Base.buy: this instance was not made by Nest`);
  });

  it('name it where an override has lost it', async () => {
    class Shop extends Base {
      override async buy() {}
    }
    const logger = new Log();
    await boot({ providers: [Shop] }, { logger });
    expect(logger.details).toEqual([
      expect.stringContaining(`Shop.buy overrides Base.buy without its ${name}(): only its calls of the parent's method are locked`),
    ]);
  });
});
