import { semaphoreOf } from './kinds.js';
import type { MakeStore } from './open-locks.js';
import { semaphoreDriverContract } from './semaphore.driver.contract.js';
import { semaphoreExclusionContract } from './semaphore.exclusion.contract.js';
import { sharedLeaseContract } from './shared-lease.contract.js';

/**
 * Everything that a semaphore promises, on one store, beyond what it has of a mutex with one permit: that contract is run over it too.
 *
 * @param makeStore opens the store once more, onto the same data: each is closed when its test ends.
 * @param remains names what there is at the store that does not expire by itself within an hour.
 */
export function semaphoreContract(name: string, makeStore: MakeStore, remains: () => Promise<string[]> | string[]): void {
  describe(`a semaphore on ${name}`, () => {
    semaphoreDriverContract(makeStore);
    semaphoreExclusionContract(makeStore);
    sharedLeaseContract(makeStore, semaphoreOf(3), semaphoreOf(3, 3), remains);
  });
}
