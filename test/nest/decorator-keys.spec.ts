import '../support/virtual-time.js';
import { DistributedLock, DistributedLockModule, Locks, ReadLock, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { locksToken } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';
import { expectRefused, refusalOf } from './refusal.js';

const DIGEST = '[0-9a-f]{32}';

/** An app with one locked method. */
async function bootStock(options: DistributedLockOptions, moduleOptions = {}) {
  class Stock {
    bodies = 0;
    @DistributedLock(options)
    async reduce(..._args: unknown[]) {
      this.bodies++;
    }
  }
  const booted = await boot({ providers: [Stock] }, moduleOptions);
  return { ...booted, Stock, stock: booted.get(Stock) };
}

describe('the key of a locked method', () => {
  const SHOP = { prefix: 'shop-', value: 'stock' };
  it.each<[string, DistributedLockOptions, unknown[], string]>([
    ['its class and its name by default', {}, ['a'], 'Stock\\.reduce'],
    ['its prefix and value', SHOP, ['a'], 'shop-stock'],
    ['its prefix before the default value', { prefix: 'shop-' }, [], 'shop-Stock\\.reduce'],
    ['its prefix alone, with a hash tag', { prefix: 'shop-{eu}', value: '' }, [], 'shop-{eu}'],
    ['a digest of its arguments', { ...SHOP, paramLock: true }, [{ sku: 'apple' }, 2], `shop-stock-${DIGEST}`],
    ['a digest of what its paths lead to', { ...SHOP, paramLock: ['0.id', '1'] }, [{ id: 'apple' }, 'north'], `shop-stock-${DIGEST}`],
    ['what its key function returns', { ...SHOP, key: (sku) => sku as string }, ['a b'], 'shop-stock-a%20b'],
    [
      'each part of a list, percent-encoded',
      { ...SHOP, key: (...args) => args as string[] },
      ['a-b', -1, '{ü}\n'],
      'shop-stock-a%2Db-%2D1-%7B%C3%BC%7D%0A',
    ],
  ])('has %s, and is known to locks.keyOf', async (_what, options, args, expected) => {
    const { Stock, stock, locks, acquired } = await bootStock(options, { namespace: 'test:' });
    await stock.reduce(...args);
    expect(acquired).toEqual([expect.stringMatching(`^test:${expected}-locks$`)]);
    expect(locks.keyOf(Stock, 'reduce', ...args)).toBe(acquired[0]);
  });

  it('has no source text of a class whose name is a method of it', async () => {
    class Named {
      static name() {}
      @DistributedLock()
      async run() {}
    }
    const { acquired, get } = await boot({ providers: [Named as never] });
    await get(Named).run();
    expect(acquired).toEqual(['(anonymous).run-locks']);
  });

  const own = (key: () => unknown): DistributedLockOptions => ({ key: key as () => string });
  it.each<[string, DistributedLockOptions, unknown[], RegExp]>([
    ['of a function', { paramLock: true }, ['a', () => 'b'], /Stock\.reduce: argument 1 is a function/],
    ['where a path leads nowhere', { paramLock: ['0.id'] }, [{}], /Stock\.reduce: argument 0 at \.id leads nowhere/],
    ['of nothing', own(() => []), [], /Stock\.reduce: key returned nothing/],
    ['of too much', own(() => 'x'.repeat(512)), [], /Stock\.reduce: .*at most 512 characters/],
  ])('cannot be made %s: the call rejects before the body, naming class and method once', async (_what, options, args, message) => {
    const { stock, acquired } = await bootStock(options);
    const call = stock.reduce(...args);
    await expectRefused(call, `^@DistributedLock\\(\\) on ${message.source}`);
    await expect(call).rejects.not.toHaveProperty('cause');
    expect([stock.bodies, acquired]).toEqual([0, []]);
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
  const bootShop = () => {
    const local = DistributedLockModule.forRoot({ name: 'local', store: memoryStore(), namespace: 'local:', logger: false });
    return boot({ providers: [Shop], imports: [local] }, { defaults: { prefix: 'p-' } });
  };

  it('goes by the defaults, by the class that a method is inherited from, and by the store', async () => {
    const { locks, acquired, get, app } = await bootShop();
    const keys = [locks.keyOf(Shop, 'reduce', 'apple'), locks.keyOf(Shop, 'reduce', 'apple', 5), locks.keyOf(Shop, 'ship', 'a-1', 7, 8)];
    const shop = get(Shop);
    await shop.reduce('apple');
    await shop.reduce('apple', 5);
    await shop.ship('a-1', 7, 8);
    expect(acquired).toEqual(keys);
    expect(keys[2]).toBe('shop-order-a%2D1-2-locks');
    expect(locks.keyOf(Shop, 'read')).toBe('p-shelf-locks');
    expect(app.get<Locks>(locksToken('local')).keyOf(Shop, 'read')).toBe('local:cache-locks');
  });

  it.each<[string, (locks: Locks) => string, RegExp]>([
    ['for a method with no lock', (locks) => locks.keyOf(Shop, 'unlocked'), /keyOf: Shop\.unlocked has no lock of this store/],
    ['for no method', (locks) => locks.keyOf(Shop, 'sell' as never), /Shop\.sell has no lock/],
    [
      'with arguments without a stable form',
      (locks) => locks.keyOf(Shop, 'reduce', (() => 5) as never),
      /Shop\.reduce: argument 0 is a function/,
    ],
    ['outside of Nest', () => new Locks(memoryStore()).keyOf(Shop, 'read'), /only the Locks of a Nest app/],
  ])('is refused %s', async (_what, ask, message) => {
    const { locks } = await bootShop();
    expect(refusalOf(() => ask(locks))).toMatch(message);
  });
});
