import type { Lease } from '../../core/holding/lease.js';
import type { LeaseLock } from '../../primitives/lease-lock.js';

/** The lock of a call, of any kind. The method runs while the call holds a lease of it. */
export type MethodLock = Pick<LeaseLock<Lease>, 'take' | 'holding'>;
