// Takes and gives back what it is told to, and says so.
import { Locks, type AcquireOptions, type Lease } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../../support/child.js';

export type Order =
  { type: 'acquire' | 'cycle'; key: string; options: AcquireOptions } | { type: 'release'; key: string } | { type: 'close' };
export type LockerMessage =
  | { type: 'ready' }
  | { type: 'granted'; key: string; owner: string; token: number }
  | { type: 'refused'; key: string; error: string }
  | { type: 'released'; key: string; answer: boolean };

const locks = new Locks(redisStore({ options: JSON.parse(process.argv[2]!) }));
const leases = new Map<string, Lease>();

async function acquire(key: string, options: AcquireOptions): Promise<void> {
  const lease = await locks.acquire(key, options);
  leases.set(key, lease);
  tellParent({ type: 'granted', key, owner: lease.owner, token: lease.fencingToken });
}

async function cycle(key: string, options: AcquireOptions): Promise<never> {
  for (;;) await locks.using(key, () => new Promise((resolve) => setTimeout(resolve, Math.random() * 5)), options);
}

async function obey(order: Order): Promise<void> {
  if (order.type === 'acquire') await acquire(order.key, order.options);
  if (order.type === 'cycle') await cycle(order.key, order.options);
  if (order.type === 'release') tellParent({ ...order, type: 'released', answer: await leases.get(order.key)!.release() });
  if (order.type === 'close') await locks.close().then(() => process.disconnect());
}

process.on('message', (order: Order) => {
  obey(order).catch((error: Error) => tellParent({ ...order, type: 'refused', error: error.name }));
});
tellParent({ type: 'ready' });
