import { EXCHANGED } from '../core/util/process-wide.js';

// All tokens use Symbol.for, so that two copies of this package in one process share them.

/** The injection token of the interceptor that the join point calls. */
export const INTERCEPTOR = Symbol.for(`nestjs-distributed-lock:interceptor:${EXCHANGED}`);

/** The property into which the interceptor is injected. Nest prints this name if it cannot resolve the token. */
export const INTERCEPTOR_PROPERTY = Symbol.for(
  'A lock such as @DistributedLock() found, but DistributedLockModule.forRoot() is not imported',
);

export const DEFAULT_NAME = 'default';

/** The injection token of a store's {@link Locks}. */
export function locksToken(name: string = DEFAULT_NAME): symbol {
  return Symbol.for(`nestjs-distributed-lock:locks:${name}`);
}
