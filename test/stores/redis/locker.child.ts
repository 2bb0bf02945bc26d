// Takes and gives back what it is told to, and says so.
import { Locks, type AcquireOptions, type Lease, type SemaphoreOptions } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeOver } from '../../support/redis-clients.js';
import { tellParent } from '../../support/child.js';

/** Which kind of lock; a mutex where nothing is said. */
export type As = 'read' | 'write' | SemaphoreOptions;
export type Order = { type: 'acquire' | 'cycle'; key: string; options: AcquireOptions; as?: As } | { type: 'release'; key: string };
export type LockerMessage =
  | { type: 'ready' }
  | { type: 'granted'; key: string; owner: string; token: number }
  | { type: 'refused'; key: string; error: string }
  | { type: 'released'; key: string; answer: boolean };

const where = JSON.parse(process.argv[2]!);
const locks = new Locks(redisStore(storeOver('cluster' in where ? where : { options: where })));
const leases = new Map<string, Lease>();

function lockOf(key: string, as?: As) {
  if (as === undefined) return locks.mutex(key);
  return typeof as === 'string' ? locks.readWriteLock(key)[as] : locks.semaphore(key, as);
}

async function acquire(key: string, options: AcquireOptions, as?: As): Promise<void> {
  const lease = await lockOf(key, as).acquire(options);
  leases.set(key, lease);
  tellParent({ type: 'granted', key, owner: lease.owner, token: lease.fencingToken });
}

async function cycle(key: string, options: AcquireOptions, as?: As): Promise<never> {
  for (;;) await lockOf(key, as).using(() => new Promise((resolve) => setTimeout(resolve, Math.random() * 5)), options);
}

async function obey(order: Order): Promise<void> {
  if (order.type === 'acquire') await acquire(order.key, order.options, order.as);
  if (order.type === 'cycle') await cycle(order.key, order.options, order.as);
  if (order.type === 'release') tellParent({ ...order, type: 'released', answer: await leases.get(order.key)!.release() });
}

process.on('message', (order: Order) => {
  obey(order).catch((error: Error) => tellParent({ ...order, type: 'refused', error: error.name }));
});
tellParent({ type: 'ready' });
