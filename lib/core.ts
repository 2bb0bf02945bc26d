export { Locks, type LocksOptions } from './locks.js';
export type { LocalQueueOptions } from './core/local-queues.js';
export { Mutex } from './primitives/mutex.js';
export { Lease } from './core/lease.js';
export { currentLease } from './core/holds.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/options.js';
export type { LockEvents, LockListener, LockLogger } from './core/events.js';
export type { LockStore } from './core/store.js';
export type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
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
