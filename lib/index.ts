export { DistributedLock, ReadLock, Semaphore, WriteLock, type LockDecorator } from './nest/decorators/distributed-lock.decorator.js';
export { LeaderOnly } from './nest/decorators/leader-only.decorator.js';
export { runStandby, type Standby, type StandbyOptions } from './nest/standby/standby.js';
export { DistributedLockModule } from './nest/distributed-lock.module.js';
export { DistributedLockInterceptor } from './nest/aspect/distributed-lock.interceptor.js';
export { LockExceptionFilter } from './nest/distributed-lock.filter.js';
export { InjectLocks, locksToken } from './nest/distributed-lock.tokens.js';
export { LOCK_KEY } from './nest/key/lock-key.js';
export type {
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
export { Locks, type LocksOptions } from './locks.js';
export type { LocalQueueOptions } from './core/waiting/lock-queues.js';
export { CountDownLatch, type CountDownLatchOptions, type LatchCallOptions } from './primitives/count-down-latch.js';
export { LeaseLock } from './primitives/lease-lock.js';
export { Mutex } from './primitives/mutex.js';
export { ReadWriteLock, type ReadWriteLockOptions, type ReadWritePolicy } from './primitives/read-write-lock.js';
export type { SemaphoreOptions } from './primitives/semaphore.js';
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
