export { DistributedLock, type LockDecorator } from './nest/distributed-lock.decorator.js';
export { DistributedLockModule } from './nest/distributed-lock.module.js';
export { DistributedLockInterceptor } from './nest/distributed-lock.interceptor.js';
export { LockExceptionFilter } from './nest/distributed-lock.filter.js';
export { InjectLocks, locksToken } from './nest/distributed-lock.tokens.js';
export { LOCK_KEY } from './nest/lock-key.js';
export type {
  DistributedLockModuleAsyncOptions,
  DistributedLockModuleOptions,
  DistributedLockOptions,
  DistributedLockOptionsFactory,
  ReturnKind,
} from './nest/distributed-lock.options.js';
export type { KeyFunction, KeyParts, LockableMethod, LockableResult, ParamPath } from './nest/lockable-method.js';
export { Locks, type LocksOptions } from './locks.js';
export type { LocalQueueOptions } from './core/local-queues.js';
export { Mutex } from './primitives/mutex.js';
export { Lease } from './core/lease.js';
export { currentLease } from './core/holds.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/options.js';
export type { LockEvents, LockListener, LockLogger } from './core/events.js';
export type { LockStore } from './core/store.js';
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
