import '../support/virtual-time.js';
import { DistributedLock, DistributedLockModule, LockConfigError, Locks, locksToken, ReadLock } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';

/** The keys that the calls take, one call after the other. */
async function keysOf<T>(type: new () => T, calls: ((service: T) => Promise<unknown>)[], options?: Parameters<typeof boot>[1]) {
  const { get, acquired } = await boot({ providers: [type] }, options);
  for (const call of calls) await call(get(type));
  return acquired;
}

describe('the key of a locked method', () => {
  it('is, by default, the class, the method and "-locks"', async () => {
    class Stock {
      @DistributedLock()
      async reduce(_sku: string) {}
      @DistributedLock()
      async raise(_sku: string) {}
    }
    expect(await keysOf(Stock, [(stock) => stock.reduce('a'), (stock) => stock.reduce('b'), (stock) => stock.raise('a')])).toEqual([
      'Stock.reduce-locks',
      'Stock.reduce-locks',
      'Stock.raise-locks',
    ]);
  });

  it('is put together from namespace, prefix and value', async () => {
    class Stock {
      @DistributedLock({ prefix: 'shop-', value: 'stock' })
      async both() {}
      @DistributedLock({ prefix: 'shop-' })
      async prefixed() {}
      @DistributedLock({ value: 'stock' })
      async valued() {}
      @DistributedLock({ prefix: 'shop-{eu}', value: '' })
      async tagged() {}
    }
    const calls = (['both', 'prefixed', 'valued', 'tagged'] as const).map((name) => (stock: Stock) => stock[name]());
    expect(await keysOf(Stock, calls, { namespace: 'test:' })).toEqual([
      'test:shop-stock-locks',
      'test:shop-Stock.prefixed-locks',
      'test:stock-locks',
      'test:shop-{eu}-locks',
    ]);
  });

  it('has a digest of all arguments with paramLock: true', async () => {
    class Stock {
      @DistributedLock({ prefix: 'shop-', value: 'stock', paramLock: true })
      async reduce(..._args: unknown[]) {}
    }
    const keys = await keysOf(Stock, [
      (stock) => stock.reduce({ sku: 'apple', size: 1 }, 2),
      (stock) => stock.reduce({ size: 1, sku: 'apple', note: undefined }, 2, undefined),
      (stock) => stock.reduce({ sku: 'apple', size: 1 }, '2'),
    ]);
    for (const key of keys) expect(key).toMatch(/^shop-stock-[0-9a-f]{32}-locks$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it('has a digest of what the paths lead to, and of nothing else', async () => {
    class Stock {
      @DistributedLock({ value: 'stock', paramLock: ['0.id', '1'] })
      async reduce(_product: { id: string; seen?: () => void }, _place: string, _units?: number) {}
    }
    const keys = await keysOf(Stock, [
      (stock) => stock.reduce({ id: 'apple' }, 'north'),
      (stock) => stock.reduce({ id: 'apple', seen: () => undefined }, 'north', 5),
      (stock) => stock.reduce({ id: 'apple' }, 'south'),
      (stock) => stock.reduce({ id: 'pear' }, 'north'),
    ]);
    expect(keys[1]).toBe(keys[0]);
    expect(new Set(keys).size).toBe(3);
    expect(keys[0]).toMatch(/^stock-[0-9a-f]{32}-locks$/);
  });

  it('has what the key function returns, each part percent-encoded', async () => {
    class Stock {
      @DistributedLock<Stock['reduce']>({ prefix: 'shop-', value: 'stock', key: (sku, units) => [sku, units] })
      async reduce(_sku: string, _units: number) {}
      @DistributedLock<Stock['raise']>({ value: 'stock', key: (sku) => sku })
      async raise(_sku: string) {}
    }
    const calls = [
      (stock: Stock) => stock.reduce('a-b', 1),
      (stock: Stock) => stock.reduce('a', -1),
      (stock: Stock) => stock.reduce('{ü}\n', 0),
      (stock: Stock) => stock.raise('a b'),
    ];
    expect(await keysOf(Stock, calls)).toEqual([
      'shop-stock-a%2Db-1-locks',
      'shop-stock-a-%2D1-locks',
      'shop-stock-%7B%C3%BC%7D%0A-0-locks',
      'stock-a%20b-locks',
    ]);
  });
});

describe('a call whose key cannot be made', () => {
  class Stock {
    bodies = 0;
    @DistributedLock({ paramLock: true })
    async all(..._args: unknown[]) {
      this.bodies++;
    }
    @DistributedLock({ paramLock: ['0.id'] })
    async some(_product: object) {
      this.bodies++;
    }
    @DistributedLock({ key: (make: () => unknown) => make() as string })
    async own(_make: () => unknown) {
      this.bodies++;
    }
  }

  it.each<[string, (stock: Stock) => Promise<unknown>, RegExp]>([
    ['of a function', (stock) => stock.all('a', () => 'b'), /Stock\.all: argument 1 is a function/],
    ['of a promise', (stock) => stock.all(Promise.resolve('a')), /Stock\.all: argument 0 is a promise/],
    ['where a path leads nowhere', (stock) => stock.some({}), /Stock\.some: argument 0 at \.id leads nowhere/],
    ['of nothing', (stock) => stock.own(() => []), /Stock\.own: key returned nothing/],
    ['of an object', (stock) => stock.own(() => ({})), /Stock\.own: key returned an object/],
    ['of too much', (stock) => stock.own(() => 'x'.repeat(512)), /Stock\.own: .*at most 512 characters/],
  ])('rejects before the body %s, naming class and method', async (_what, call, message) => {
    const { get, acquired } = await boot({ providers: [Stock] });
    const error: unknown = await call(get(Stock)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    // Once, and not in a cause again.
    const { message: said, cause } = error as Error;
    expect(said).toMatch(new RegExp(`^@DistributedLock\\(\\) on ${message.source}`));
    expect(cause).toBeUndefined();
    expect([get(Stock).bodies, acquired]).toEqual([0, []]);
  });
});

describe('locks.keyOf', () => {
  class Base {
    @DistributedLock<Base['ship']>({ prefix: 'shop-', value: 'order', key: (id, ...rest) => [id, rest.length] })
    async ship(id: string, ..._rest: number[]): Promise<string> {
      return id;
    }
  }
  class Shop extends Base {
    @DistributedLock({ paramLock: true })
    async reduce(_sku: string, _units?: number): Promise<void> {}

    @ReadLock({ value: 'shelf' })
    @DistributedLock({ store: 'local', value: 'cache' })
    async read(): Promise<void> {}

    unlocked(): string {
      return 'no lock';
    }
  }

  const local = () => DistributedLockModule.forRoot({ name: 'local', store: memoryStore(), namespace: 'local:', logger: false });

  it.each([true, false])(
    'is the key that a call takes, on inherited methods and with defaults too (namespace: %p)',
    async (hasNamespace) => {
      const { locks, acquired, get } = await boot(
        { providers: [Shop], imports: [local()] },
        { namespace: hasNamespace ? 'eu:' : '', defaults: { prefix: 'p-' } },
      );
      const keys = [
        locks.keyOf(Shop, 'reduce', 'apple'),
        locks.keyOf(Shop, 'reduce', 'apple', 5),
        locks.keyOf(Shop, 'ship', 'a-1', 7, 8),
        locks.keyOf(Shop, 'read'),
      ];
      expect(keys[2]).toBe(`${hasNamespace ? 'eu:' : ''}shop-order-a%2D1-2-locks`);
      const shop = get(Shop);
      await shop.reduce('apple');
      await shop.reduce('apple', 5);
      await shop.ship('a-1', 7, 8);
      expect(acquired).toEqual(keys.slice(0, 3));
    },
  );

  it('goes by the store', async () => {
    const { locks, app } = await boot({ imports: [local()], providers: [Shop] });
    expect(locks.keyOf(Shop, 'read')).toBe('shelf-locks');
    expect(app.get<Locks>(locksToken('local')).keyOf(Shop, 'read')).toBe('local:cache-locks');
  });

  it.each<[string, (locks: Locks) => string, RegExp]>([
    ['no lock', (locks) => locks.keyOf(Shop, 'unlocked'), /keyOf: Shop\.unlocked has no lock of this store/],
    ['no such method', (locks) => locks.keyOf(Shop, 'sell' as never), /Shop\.sell has no lock/],
    [
      'arguments without a stable form',
      (locks) => locks.keyOf(Shop, 'reduce', (() => 5) as never),
      /Shop\.reduce: argument 0 is a function/,
    ],
  ])('is refused for a method with %s', async (_what, ask, message) => {
    const { locks } = await boot({ providers: [Shop], imports: [local()] });
    expect(() => ask(locks)).toThrow(LockConfigError);
    expect(() => ask(locks)).toThrow(message);
  });

  it('is refused outside of Nest', () => {
    expect(() => new Locks(memoryStore()).keyOf(Shop, 'read')).toThrow(/only the Locks of a Nest app/);
  });
});
