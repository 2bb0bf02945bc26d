import type { DistributedLockOptions, Lock, LockableMethod, LockDecorator, Locks, LockStore } from 'nestjs-distributed-lock';
import { DistributedLock, ReadLock, Semaphore, WriteLock } from 'nestjs-distributed-lock';
import type { LeaseDriver } from 'nestjs-distributed-lock/core';

/** One of the decorators that lock. */
export interface Kind {
  readonly name: string;
  readonly lock: (options?: DistributedLockOptions) => LockDecorator<LockableMethod>;
  /** What makes a call wait that locks this key. */
  blockerOf(locks: Locks, key: string): Lock;
  /** What holds a key that is locked so. */
  driverOf(store: LockStore): LeaseDriver;
}

/** A semaphore has one permit here. */
export const KINDS: readonly Kind[] = [
  {
    name: '@DistributedLock',
    lock: DistributedLock,
    blockerOf: (locks, key) => locks.mutex(key),
    driverOf: (store) => store.mutex,
  },
  {
    name: '@WriteLock',
    lock: WriteLock,
    blockerOf: (locks, key) => locks.readWriteLock(key).read,
    driverOf: (store) => store.readWriteLock!.write,
  },
  {
    name: '@ReadLock',
    lock: ReadLock,
    blockerOf: (locks, key) => locks.readWriteLock(key).write,
    driverOf: (store) => store.readWriteLock!.read,
  },
  {
    name: '@Semaphore',
    lock: (options) => Semaphore({ permits: 1, ...options }),
    blockerOf: (locks, key) => locks.semaphore(key, { permits: 1 }),
    driverOf: (store) => store.semaphore!,
  },
];
