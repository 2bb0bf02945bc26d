import { latchDriverContract } from './count-down-latch.driver.contract.js';
import { inspectContract } from './inspect.contract.js';
import { type Kind, MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from './kinds.js';
import { leaseDriverContract } from './lease-driver.contract.js';
import { exclusionContract } from './mutex.exclusion.contract.js';
import { extendContract, offersContract, yieldsContract } from './mutex.offers.contract.js';
import { type MakeStore, where } from './open-locks.js';
import { readWriteDriverContract } from './read-write-lock.driver.contract.js';
import { keyKindsContract } from './read-write-lock.kinds.contract.js';
import { semaphoreDriverContract } from './semaphore.driver.contract.js';

/**
 * What the engine asks of a store, and one race for each kind of lock: for every store.
 *
 * @param makeStore opens the store once more, onto the same data: each is closed when its test ends.
 */
export function storeContract(name: string, makeStore: MakeStore): void {
  const kinds = makeStore.without?.includes('semaphore') ? [MUTEX, WRITE_LOCK] : [MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE];
  describe.each(kinds)(`a $name on ${name}`, (kind: Kind) => {
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
