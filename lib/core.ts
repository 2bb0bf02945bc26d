export { Locks } from './locks.js';
export type { LocalQueueOptions, LocksOptions } from './core/model/locks-options.js';
export type { CountDownLatch, CountDownLatchOptions, LatchCallOptions } from './latch/count-down-latch.js';
export type { Lock } from './primitives/lock.js';
export type { ReadWriteLock, ReadWriteLockOptions, ReadWritePolicy, SemaphoreOptions } from './primitives/kinds.js';
export type { LeaderElection, Leader, LeaderElectionOptions, LeaderEvents, RunOptions, Term } from './primitives/leader-election.js';
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
export type { NdlDocument, NdlError } from './operate/ndl-document.js';
export { waitGraph, type Deadlock, type DeadlockMember } from './operate/wait-graph.js';
export type { Bus, BusTopic, HolderState, Inspector, KeyState, SeizeRequest, WaiterState } from './core/store/inspector.js';
export { runStandby, type Standby, type StandbyOptions } from './nest/standby/standby.js';
export type { StandbyContainer } from './nest/standby/standby-app.js';
export { locksToken } from './nest/distributed-lock.tokens.js';
export type { Lease, MultiLease } from './core/model/lease.js';
export { currentLease } from './core/holding/call-chain.js';
export type { AcquireOptions, OnTimeout, TimeoutContext, UsingOptions } from './core/model/options.js';
export type { LockEvents, LockListener } from './core/model/events.js';
export type { LockLogger, LogDetails, WarningCode } from './core/model/lock-log.js';
export type { LatchChange, LatchDriver, LatchLook, LatchOperation, LatchState } from './core/store/latch-driver.js';
export type { CheckState, DoctorCheck, DoctorOptions, DoctorReport, DoctorVerdict, LocksHealth } from './core/model/doctor-report.js';
export type { StoreDoctor } from './core/store/store-doctor.js';
export type { LockStore, StoreFeature } from './core/store/lock-store.js';
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
  type Revocation,
} from './core/model/errors.js';
