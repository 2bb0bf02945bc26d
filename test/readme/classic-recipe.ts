// #region classic-recipe
import type { Redis } from 'ioredis';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`;

/** What programs in any language do, on the same key: each side excludes the other. */
export async function classicLock(redis: Redis, owner: string): Promise<boolean> {
  return (await redis.set('shop-order-42-locks', owner, 'PX', 10_000, 'NX')) === 'OK';
}

export async function classicUnlock(redis: Redis, owner: string): Promise<boolean> {
  return (await redis.eval(RELEASE, 1, 'shop-order-42-locks', owner)) === 1;
}
// #endregion
