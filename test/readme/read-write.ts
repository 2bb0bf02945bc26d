/** Publishes when the test lets it. */
export const press = { published: [] as string[], isWaiting: false, go: (): void => undefined };
const publish = async (prices: ReadonlyMap<string, number>): Promise<void> => {
  await new Promise<void>((resolve) => {
    press.go = resolve;
    press.isWaiting = true;
  });
  press.published.push([...prices.values()].join(' '));
};

// #region read-write-lock
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

export const locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }), {
  defaults: { keyTimeout: 10_000 },
});
const prices = new Map([
  ['apple', 100],
  ['pear', 200],
]);
const { read, write } = locks.readWriteLock('prices');

/** Any number at a time. None sees a partial update. */
export async function total(basket: string[]): Promise<number> {
  return read.using(() => basket.reduce((sum, item) => sum + (prices.get(item) ?? 0), 0), { waitTimeout: 2000 });
}

/** One at a time, and no reader meanwhile. */
export async function raise(percent: number): Promise<void> {
  await write.using(
    async (lease) => {
      for (const [item, price] of prices) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        lease.assertHeld();
        prices.set(item, (price * (100 + percent)) / 100);
      }
    },
    { waitTimeout: 2000 },
  );
}
// #endregion

// #region downgrade
/** Writes, then keeps only the read lock: others can read while this call publishes, but nobody can write. */
export async function setPrice(item: string, price: number): Promise<void> {
  await using reading = await write.using(async () => {
    prices.set(item, price);
    return read.acquire();
  });
  await publish(prices);
  reading.assertHeld();
}
// #endregion
