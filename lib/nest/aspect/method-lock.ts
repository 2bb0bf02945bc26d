import type { HeldLease } from '../../core/holding/held-lease.js';
import type { Guard } from '../../primitives/lock.js';

/** The lock of a call, of any kind. The method runs while the call holds a lease of it. */
export type MethodLock = Guard<HeldLease>;
