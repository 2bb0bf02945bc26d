export { DistributedLockTestingModule, type DistributedLockTestingOptions } from './testing.module.js';
export { faultyStore, type FaultyStore } from './faulty.store.js';
export { fakeTimers, passTime } from './pass-time.js';
export type { KeyPattern } from './key-pattern.js';
export { type FaultyRequest, LockFaults } from './lock-faults.js';
export { lockMatchers, type LockedHow, type LockMatcherFunctions, type LockMatchers, type Verdict } from './lock-matchers.js';
export { LockProbe, type ElsewhereLease, type ElsewhereOptions, type Holding, type RecordedEvent } from './lock-probe.js';
