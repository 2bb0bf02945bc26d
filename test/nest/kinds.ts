import {
  DistributedLock,
  ReadLock,
  Semaphore,
  WriteLock,
  type DistributedLockOptions,
  type Lease,
  type Lock,
  type LockableMethod,
  type LockDecorator,
  type Locks,
  type LockStore,
} from 'nestjs-distributed-lock';
import type { LeaseDriver } from 'nestjs-distributed-lock/core';
import { boot } from './boot.js';

/** One of the decorators that lock, as the specs use them that are the same for all. */
export interface Kind {
  readonly name: string;
  readonly lock: (options?: DistributedLockOptions) => LockDecorator<LockableMethod>;
  /** What makes a call wait that locks this key. */
  blockerOf(locks: Locks, key: string): Lock;
  /** What holds a key that is locked so. */
  driverOf(store: LockStore): LeaseDriver;
}

/** Those that let one call at a time run. A semaphore has one permit here. */
export const EXCLUSIVE: readonly Kind[] = [
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
    name: '@Semaphore',
    lock: (options) => Semaphore({ permits: 1, ...options }),
    blockerOf: (locks, key) => locks.semaphore(key, { permits: 1 }),
    driverOf: (store) => store.semaphore!,
  },
];

export const KINDS: readonly Kind[] = [
  ...EXCLUSIVE,
  {
    name: '@ReadLock',
    lock: ReadLock,
    blockerOf: (locks, key) => locks.readWriteLock(key).write,
    driverOf: (store) => store.readWriteLock!.read,
  },
];

/** An app as of {@link boot}, with a look at its keys as this kind of lock holds them. */
export async function bootKind(kind: Kind, ...[metadata, options]: Parameters<typeof boot>) {
  const booted = await boot(metadata, options);
  const { locks, store } = booted;
  const driver = kind.driverOf(store);
  return {
    ...booted,
    isTaken: async (key: string) => (await driver.check({ key, owner: 'nobody' })).state === 'taken',
    /** Keeps the calls waiting that lock this key. */
    occupy: (key: string, waitTimeout?: number) => kind.blockerOf(locks, key).acquire({ keyTimeout: 60_000, waitTimeout }),
    /** Takes a call's lock away from under it. */
    steal: (lease: Lease | undefined) => driver.release({ key: lease?.key ?? '', owner: lease?.owner ?? '', keepFor: 0 }),
  };
}
