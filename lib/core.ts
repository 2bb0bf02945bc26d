export { Locks, type LocksOptions } from './locks.js';
export type { LocalQueueOptions } from './core/waiting/lock-queues.js';
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
export { Lease } from './core/holding/lease.js';
export { currentLease } from './core/holding/call-chain.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/model/options.js';
export type { LockEvents, LockListener, LockLogger } from './core/model/events.js';
export type { LatchChange, LatchDriver, LatchLook, LatchOperation, LatchState } from './core/store/latch-driver.js';
export type { LockStore } from './core/store/lock-store.js';
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
} from './core/store/lease-driver.js';
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
} from './core/model/errors.js';
