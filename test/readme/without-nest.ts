const pack = async (order: string, fencingToken: number | null): Promise<string> => `${order} packed under ${typeof fencingToken}`;

// #region without-nest
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

export const locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }), { namespace: 'shop:' });

/** Waits up to two seconds, then rejects with LockTimeoutError. */
export async function ship(order: string): Promise<string> {
  return locks.using(`order:${order}`, async (lease) => pack(order, lease.fencingToken), { waitTimeout: 2000 });
}

/** One try. The lease is released at the end of the block. */
export async function shipIfFree(order: string): Promise<string> {
  await using lease = await locks.tryAcquire(`order:${order}`); // or acquire(), which waits
  return lease ? await pack(order, lease.fencingToken) : 'another process is packing it';
}
// #endregion
