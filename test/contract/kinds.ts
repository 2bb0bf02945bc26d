import type { LocksOptions } from '../../lib/core/model/locks-options.js';
import type { LeaseDriver, Share } from '../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../lib/core/store/lock-store.js';
import { Locks } from '../../lib/locks.js';
import type { ReadWritePolicy } from '../../lib/primitives/kinds.js';
import type { Lock } from '../../lib/primitives/lock.js';

/** A kind of lock. If one holds it alone, it promises what the mutex does. */
export interface Kind {
  readonly name: string;
  lockOf(locks: Locks, key: string): Lock;
  /** Where its requests go. */
  driverOf(store: LockStore): LeaseDriver;
  /** The store with another driver in that place. */
  withDriver(store: LockStore, driver: LeaseDriver): LockStore;
  /** The share that its requests ask for, if a key could be shared. */
  readonly share?: Share;
}

export const MUTEX: Kind = {
  name: 'mutex',
  lockOf: (locks, key) => locks.mutex(key),
  driverOf: ({ mutex }) => mutex,
  withDriver: (store, mutex) => ({ ...store, mutex }),
};

/** One side of a read/write lock. */
export function sideOf(side: 'read' | 'write', policy: ReadWritePolicy = 'fair'): Kind {
  const isLast = policy === (side === 'read' ? 'writers' : 'readers');
  return {
    name: `${side} lock`,
    lockOf: (locks, key) => locks.readWriteLock(key, { policy })[side],
    driverOf: ({ readWriteLock }) => readWriteLock![side],
    withDriver: (store, driver) => ({ ...store, readWriteLock: { ...store.readWriteLock!, [side]: driver } }),
    share: { count: side === 'read' ? 1 : Infinity, permits: Infinity, rank: isLast ? 1 : 0 },
  };
}

export function semaphoreOf(permits: number, count = 1): Kind {
  return {
    name: `semaphore with ${count} of ${permits} permits`,
    lockOf: (locks, key) => locks.semaphore(key, { permits, count }),
    driverOf: ({ semaphore }) => semaphore!,
    withDriver: (store, semaphore) => ({ ...store, semaphore }),
    share: { count, permits, rank: 0 },
  };
}

export const WRITE_LOCK = sideOf('write');
export const SEMAPHORE_OF_ONE = semaphoreOf(1);

/** Locks whose `mutex`, and so whatever goes through it, is of another kind. */
export class LocksOfKind extends Locks {
  constructor(
    private readonly kind: Kind,
    store: LockStore,
    options: LocksOptions,
  ) {
    super(store, options);
  }

  override mutex(key: string): Lock {
    // The kind itself may be made of mutexes.
    const plain = Object.create(this, { mutex: { value: super.mutex } }) as Locks;
    return this.kind.lockOf(plain, key);
  }
}
