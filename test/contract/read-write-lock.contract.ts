import { sideOf } from './kinds.js';
import type { MakeStore } from './open-locks.js';
import { readWriteDriverContract } from './read-write-lock.driver.contract.js';
import { readWriteExclusionContract } from './read-write-lock.exclusion.contract.js';
import { keyKindsContract } from './read-write-lock.kinds.contract.js';
import { readWriteReentrancyContract } from './read-write-lock.reentrancy.contract.js';
import { sharedLeaseContract } from './shared-lease.contract.js';

/**
 * Everything that a read/write lock promises, on one store, beyond what its write lock has of a mutex: that contract is run over it too.
 *
 * @param makeStore opens the store once more, onto the same data: each is closed when its test ends.
 * @param remains names what there is at the store that does not expire by itself within an hour.
 */
export function readWriteLockContract(name: string, makeStore: MakeStore, remains: () => Promise<string[]> | string[]): void {
  describe(`a read/write lock on ${name}`, () => {
    readWriteDriverContract(makeStore);
    readWriteExclusionContract(makeStore);
    readWriteReentrancyContract(makeStore);
    sharedLeaseContract(makeStore, sideOf('read'), sideOf('write'), remains);
    keyKindsContract(makeStore);
  });
}
