import type { LockStore } from '../../core/store/lock-store.js';
import { latchDriverContract } from './count-down-latch.driver.contract.js';
import { inspectContract } from './inspect.contract.js';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from './kinds.js';
import { leaseDriverContract } from './lease-driver.contract.js';
import { exclusionContract } from './mutex.exclusion.contract.js';
import { extendContract, offersContract, yieldsContract } from './mutex.offers.contract.js';
import { type MakeStore, type StoreExtra, where } from './open-locks.js';
import { readWriteDriverContract } from './read-write-lock.driver.contract.js';
import { keyKindsContract } from './read-write-lock.kinds.contract.js';
import { semaphoreDriverContract } from './semaphore.driver.contract.js';
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
 * The promises that the locks need of a store, and one race for each kind of lock: for every store.
 *
 * @param open opens the store once more, onto the same data: each is closed when its test ends.
 */
export function storeContract(name: string, open: () => LockStore, { without = [], runner }: StoreContractOptions = {}): void {
  runBy(runner);
  const makeStore: MakeStore = Object.assign(() => open(), { without });
  const kinds = without.includes('semaphore') ? [MUTEX, WRITE_LOCK] : [MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE];
  for (const kind of kinds)
    describe(`a ${kind.name} on ${name}`, () => {
      leaseDriverContract(makeStore, kind);
      offersContract(makeStore, kind);
      exclusionContract(makeStore, kind); // G2 G5
    });
  describe(`a mutex on ${name}`, () => {
    // Requests that a driver of shared keys has not.
    extendContract(makeStore, MUTEX);
    yieldsContract(makeStore, MUTEX);
  });
  describe(`a read/write lock on ${name}`, () => readWriteDriverContract(makeStore));
  where(makeStore, 'semaphore', () => {
    describe(`a semaphore on ${name}`, () => semaphoreDriverContract(makeStore));
  });
  where(makeStore, 'countDownLatch', () => {
    describe(`a count-down latch on ${name}`, () => latchDriverContract(makeStore));
  });
  keyKindsContract(makeStore);
  where(makeStore, 'inspector', () => inspectContract(name, makeStore));
}
