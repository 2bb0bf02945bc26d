export { Locks, type LocksOptions } from './locks.js';
export type { LocalQueueOptions } from './core/local-queues.js';
export { CountDownLatch, type CountDownLatchOptions, type LatchCallOptions } from './primitives/count-down-latch.js';
export { LeaseLock } from './primitives/lease-lock.js';
export { Mutex } from './primitives/mutex.js';
export {
  ReadWriteLock,
  type ReadLock,
  type ReadWriteLockOptions,
  type ReadWritePolicy,
  type WriteLock,
} from './primitives/read-write-lock.js';
export { Semaphore, type SemaphoreOptions } from './primitives/semaphore.js';
export { MultiLock } from './primitives/multi-lock.js';
export { MultiLease } from './primitives/multi-lease.js';
export {
  LeaderElection,
  type Leader,
  type LeaderElectionOptions,
  type LeaderEvents,
  type RunOptions,
  type Term,
} from './primitives/leader-election.js';
export { Lease } from './core/lease.js';
export { currentLease } from './core/holds.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/options.js';
export type { LockEvents, LockListener, LockLogger } from './core/events.js';
export type { LatchChange, LatchDriver, LatchLook, LatchOperation, LatchState } from './core/latch.js';
export type { LockStore } from './core/store.js';
export type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Share,
  Tenancy,
  WakeUps,
} from './core/driver.js';
export {
  LockAbortedError,
  LockConfigError,
  LockError,
  LockLostError,
  LockTimeoutError,
  QuorumError,
  StoreError,
  UnsupportedPrimitiveError,
  type LockErrorCode,
} from './core/errors.js';
