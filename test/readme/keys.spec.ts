import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createHash } from 'node:crypto';
import { classicLock, classicUnlock } from './classic-recipe.js';
import { OrderService, Product } from './keys.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

/** As docs/keys.md says, of a canonical form. */
const digest = (form: string) => createHash('sha256').update(form).digest('hex').slice(0, 32);
const order = (note?: string) => ({ id: 42, customer: { id: 'C-1' }, note });

async function appWith(store = memoryStore()) {
  const app = await Test.createTestingModule({
    imports: [DistributedLockModule.forRoot({ store, logger: false })],
    providers: [OrderService],
  }).compile();
  const keys: string[] = [];
  app.get(Locks).on('acquired', ({ key }) => keys.push(key));
  return { app, keys, orders: app.get(OrderService) };
}

it('keys are those that the comments name', async () => {
  const { app, keys, orders } = await appWith();
  await orders.importAll();
  await orders.ship(order());
  await orders.invoice(order(), 2030);
  await orders.pack(order('a note'), 1);
  await orders.pack(order('another'), 1);
  await orders.reprice(new Product('apple', new Date(0)));
  await orders.reprice(new Product('apple', new Date(1)));
  const [parcel, product] = [`shop-parcel-${digest('"C-1"1;')}-locks`, `shop-product-${digest('[1{"0"K"apple"}')}-locks`];
  expect(keys.slice(0, 3)).toEqual(['shop-OrderService.importAll-locks', 'shop-order-42-locks', 'shop-invoice-C%2D1-2030-locks']);
  expect(keys.slice(3)).toEqual([parcel, parcel, product, product]);
  await app.close();
});

describe('on Redis', () => {
  const setting = useRedisOfEnv();

  it('the classic recipe keeps a locked method out, and is kept out by one', async () => {
    const { redis } = setting;
    const { app, orders } = await appWith(redisStore({ url: setting.url }));
    expect(await classicLock(redis, 'me')).toBe(true);
    await expect(orders.ship(order())).rejects.toThrow(LockTimeoutError);
    expect(await classicUnlock(redis, 'me')).toBe(true);
    await expect(orders.ship(order())).resolves.toBe('42 is on its way');

    const lease = await app.get(Locks).acquire('shop-order-42-locks');
    expect(await classicLock(redis, 'me')).toBe(false);
    expect(await classicUnlock(redis, 'me')).toBe(false);
    expect(await lease.release()).toBe(true);
    expect(await classicLock(redis, 'me')).toBe(true);
    await app.close();
  });

  it('the layout is the one that docs/keys.md shows', async () => {
    const { redis } = setting;
    const locks = new Locks(redisStore({ url: setting.url }), { logger: false, defaults: { keyTimeout: 60_000 } });
    const mutex = await locks.acquire('order:42');
    const permits = await locks.semaphore('pool', { permits: 3, count: 2 }).acquire();
    await locks.countDownLatch('import').trySetCount(3);
    await locks.acquire('order:{42}');

    expect((await redis.keys('*')).sort()).toEqual(
      ['import', 'order:42', 'order:{42}', 'order:{42}::fence', 'pool', '{order:42}:fence', '{pool}:fence'].sort(),
    );
    expect(await redis.get('order:42')).toBe(mutex.owner);
    expect(mutex.owner).toMatch(/^.+@[^:]+:\d+:[0-9a-f-]{36}$/);
    expect(await redis.get('{order:42}:fence')).toMatch(/^\d{16}$/);
    expect(await redis.zrange('pool', '0', '-1')).toEqual(['semaphore 3', `permits:${permits.owner}`, permits.owner]);
    expect(await redis.hget('import', 'count')).toBe('3');
    await locks.close();
  });
});
