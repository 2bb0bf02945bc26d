import { DistributedLock, DistributedLockModule, LockConfigError, Locks, locksToken, ReadLock } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';

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

describe('locks.keyOf', () => {
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
