import type { LockStore } from '../../core/store/lock-store.js';
import { inspectContract } from './inspect.contract.js';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from './kinds.js';
import { exclusionContract } from './mutex.exclusion.contract.js';
import { type MakeStore, type StoreExtra, where } from './open-locks.js';
import { describe, runBy, type TestRunner } from './runner.js';

export type { StoreExtra };

/** Options of {@link storeContract}. */
export interface StoreContractOptions {
  /** Default: the globals of Jest, and of Vitest with `globals: true`. */
  readonly runner?: TestRunner;
  /** Parts that the store does not have. A `recordStore` has all that its table has, which may lack `wakeUps`, `bus` and `keys`. */
  readonly without?: readonly StoreExtra[];
}

/**
 * A race for each kind of lock over a store, and all that operators ask. The drivers of a `recordStore` are those of this package, whose tests cover them.
 *
 * @param open opens the store once more, onto the same data: each is closed when its test ends.
 */
export function storeContract(name: string, open: () => LockStore, { without = [], runner }: StoreContractOptions = {}): void {
  runBy(runner);
  const makeStore: MakeStore = Object.assign(() => open(), { without });
  const kinds = without.includes('semaphore') ? [MUTEX, WRITE_LOCK] : [MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE];
  for (const kind of kinds) describe(`a ${kind.name} on ${name}`, () => exclusionContract(makeStore, kind)); // G2 G5
  where(makeStore, 'inspector', () => inspectContract(name, makeStore));
}
