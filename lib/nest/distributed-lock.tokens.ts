import { Inject } from '@nestjs/common';

// Symbol.for throughout: two copies of this package in one process must mean the same thing.

/** What the join point asks Nest for. */
export const INTERCEPTOR = Symbol.for('nestjs-distributed-lock:interceptor');

/** The property that it is injected into. Nest prints this name where it cannot resolve the token. */
export const INTERCEPTOR_PROPERTY = Symbol.for(
  'A lock such as @DistributedLock() found, but DistributedLockModule.forRoot() is not imported',
);

/** Metadata of a join point: its {@link LockDefinition}. */
export const DEFINITION = 'nestjs-distributed-lock:definition';

export const DEFAULT_NAME = 'default';

/** The injection token of a store's {@link Locks}. */
export function locksToken(name: string = DEFAULT_NAME): symbol {
  return Symbol.for(`nestjs-distributed-lock:locks:${name}`);
}

/** Injects the {@link Locks} of a named store; without a name, `Locks` itself is the token too. */
export function InjectLocks(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(locksToken(name));
}
