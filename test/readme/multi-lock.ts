// #region multi-lock
import { Locks, type MultiLease } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

export const locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }), { namespace: 'bank:' });
const balances = new Map<string, number>();

/** No other transfer uses these accounts meanwhile, in whatever order they are named. */
export async function transfer(from: string, to: string, amount: number): Promise<void> {
  await locks.multiLock([from, to]).using(
    async (lease) => {
      const left = (balances.get(from) ?? 0) - amount;
      await new Promise((resolve) => setTimeout(resolve, 5));
      lease.assertHeld();
      balances.set(from, left);
      balances.set(to, (balances.get(to) ?? 0) + amount);
    },
    { keyTimeout: 5000, waitTimeout: 10_000 },
  );
}
// #endregion

export { balances };

// #region multi-lock-stores
/** Locks of any kind and of several stores. All of them are released at the end of the block. */
export async function audit(archive: Locks, account: string, check: (lease: MultiLease) => Promise<void>): Promise<boolean> {
  const lock = locks.multiLock([account, locks.readWriteLock('rates').read, archive.mutex('ledger')]);
  await using lease = await lock.tryAcquire({ keyTimeout: 10_000 });
  if (!lease) return false;
  await check(lease);
  return true;
}
// #endregion
