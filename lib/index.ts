export {
  CronLock,
  DistributedLock,
  LeaderOnly,
  ReadLock,
  Semaphore,
  WriteLock,
  type LockDecorator,
} from './nest/decorators/distributed-lock.decorator.js';
export { runStandby, type Standby, type StandbyOptions } from './nest/standby/standby.js';
export { DistributedLockModule } from './nest/distributed-lock.module.js';
export { DistributedLockInterceptor } from './nest/aspect/distributed-lock.interceptor.js';
export { LockExceptionFilter } from './nest/distributed-lock.filter.js';
export { InjectLocks, locksToken } from './nest/distributed-lock.tokens.js';
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
export type { LocalQueueOptions, LocksOptions } from './core/model/locks-options.js';
export type { CountDownLatch, CountDownLatchOptions, LatchCallOptions } from './latch/count-down-latch.js';
export type { Lock } from './primitives/lock.js';
export type { ReadWriteLock, ReadWriteLockOptions, ReadWritePolicy, SemaphoreOptions } from './primitives/kinds.js';
export type { LeaderElection, Leader, LeaderElectionOptions, LeaderEvents, RunOptions, Term } from './primitives/leader-election.js';
export type { Lease, MultiLease } from './core/model/lease.js';
export { currentLease } from './core/holding/call-chain.js';
export type {
  ForceOptions,
  ForceReply,
  HeldKey,
  KeyEvent,
  KeyHolder,
  KeyKind,
  KeyName,
  KeyReport,
  KeyWaiter,
  ProcessReport,
  ListOptions,
  OwnerParts,
  WatchOptions,
} from './core/model/key-report.js';
export { waitGraph, type Deadlock, type DeadlockMember } from './operate/wait-graph.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/model/options.js';
export type { LockEvents, LockListener } from './core/model/events.js';
export type { LockLogger, LogDetails, WarningCode } from './core/model/lock-log.js';
export type { CheckState, DoctorCheck, DoctorOptions, DoctorReport, DoctorVerdict, LocksHealth } from './core/model/doctor-report.js';
export type {
  CallTrace,
  CallTracing,
  ObservedCall,
  ObservedLease,
  ObservedRequest,
  StoreOperation,
  Telemetry,
  TelemetryObserver,
  TelemetrySource,
} from './core/model/telemetry.js';
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
  type Revocation,
} from './core/model/errors.js';
