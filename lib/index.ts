export {
  CronLock,
  DistributedLock,
  LeaderOnly,
  ReadLock,
  Semaphore,
  WriteLock,
  type LockDecorator,
} from './nest/decorators/distributed-lock.decorator.js';
export { DistributedLockModule, InjectLocks } from './nest/distributed-lock.module.js';
export { DistributedLockInterceptor } from './nest/aspect/distributed-lock.interceptor.js';
export { LockExceptionFilter } from './nest/distributed-lock.filter.js';
export { LOCK_KEY } from './nest/key/lock-key.js';
export type {
  CronLockOptions,
  DistributedLockModuleAsyncOptions,
  DistributedLockModuleOptions,
  DistributedLockOptions,
  DistributedLockOptionsFactory,
  LeaderOnlyOptions,
  ReadWriteDecoratorOptions,
  ReturnKind,
  SemaphoreDecoratorOptions,
} from './nest/distributed-lock.options.js';
export type { KeyFunction, KeyParts, LockableMethod, LockableResult, ParamPath } from './nest/decorators/lockable-method.js';
export { Locks } from './locks.js';
export type { LocksOptions } from './core/model/locks-options.js';
export type { CountDownLatch, CountDownLatchOptions } from './latch/count-down-latch.js';
export type { Lock } from './primitives/lock.js';
export type { ReadWriteLock, ReadWriteLockOptions, ReadWritePolicy, SemaphoreOptions } from './primitives/kinds.js';
export type { LeaderElection, LeaderElectionOptions, Term } from './primitives/leader-election.js';
export type { Lease, MultiLease } from './core/model/lease.js';
export { currentLease } from './core/holding/call-chain.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/model/options.js';
export type { LockEvents } from './core/model/events.js';
export type { LockLogger, LogDetails } from './core/model/lock-log.js';
export type { LockStore } from './core/store/lock-store.js';
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
