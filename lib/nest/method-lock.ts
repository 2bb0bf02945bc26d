import type { Lease } from '../core/lease.js';
import type { LeaseLock } from '../primitives/lease-lock.js';

/** What a call takes, of whatever kind: it runs while it holds a lease of it. */
export type MethodLock = Pick<LeaseLock<Lease>, 'take' | 'holding'>;
