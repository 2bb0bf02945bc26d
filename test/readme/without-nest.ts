const pack = async (order: string, fencingToken: number | null): Promise<string> => `${order} packed under ${typeof fencingToken}`;

// #region without-nest
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

const store = redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' });
export const locks = new Locks(store, { namespace: 'shop:', defaults: { keyTimeout: 10_000 } });

/** Waits up to two seconds; rejects with a LockTimeoutError then. */
export async function ship(order: string): Promise<string> {
  return locks.using(`order:${order}`, async (lease) => pack(order, lease.fencingToken), { waitTimeout: 2000 });
}

/** The same with a bare lease, which the end of the block releases. */
export async function shipByLease(order: string): Promise<string> {
  await using lease = await locks.acquire(`order:${order}`, { waitTimeout: 2000 });
  return await pack(order, lease.fencingToken);
}

/** One try: `null` where somebody else has it. */
export async function shipIfFree(order: string): Promise<string> {
  await using lease = await locks.tryAcquire(`order:${order}`);
  return lease ? await pack(order, lease.fencingToken) : 'somebody else is packing it';
}

/** At the end of the program: waits for what runs, releases what is held, closes the connection. */
export async function shutDown(): Promise<void> {
  await locks.close();
}
// #endregion
