import { leaseDriverContract } from './lease-driver.contract.js';
import { cleanupContract } from './mutex.cleanup.contract.js';
import { entryContract } from './mutex.entry.contract.js';
import { exclusionContract } from './mutex.exclusion.contract.js';
import { fairnessContract } from './mutex.fairness.contract.js';
import { handOverContract } from './mutex.hand-over.contract.js';
import { holdingContract } from './mutex.holding.contract.js';
import { localOutageContract } from './mutex.local-outage.contract.js';
import { localQueueContract } from './mutex.local-queue.contract.js';
import { localTermsContract } from './mutex.local-terms.contract.js';
import { patienceContract } from './mutex.patience.contract.js';
import { reentrancyContract } from './mutex.reentrancy.contract.js';
import { repetitionContract } from './mutex.repetition.contract.js';
import { resultsContract } from './mutex.results.contract.js';
import { shutdownContract } from './mutex.shutdown.contract.js';
import { validityContract } from './mutex.validity.contract.js';
import type { MakeStore } from './open-locks.js';

/**
 * Everything that a mutex promises, on one store.
 *
 * @param makeStore opens the store once more, onto the same data: each is closed when its test ends.
 * @param remains names what there is at the store that does not expire by itself within an hour.
 */
export function mutexContract(name: string, makeStore: MakeStore, remains: () => Promise<string[]> | string[]): void {
  describe(`a mutex on ${name}`, () => {
    leaseDriverContract(makeStore, ({ mutex }) => mutex);
    entryContract(makeStore); // G1
    exclusionContract(makeStore); // G2 G5
    validityContract(makeStore); // G3 G4
    repetitionContract(makeStore); // G6
    cleanupContract(makeStore, remains); // G7
    handOverContract(makeStore); // G8
    patienceContract(makeStore); // G9
    resultsContract(makeStore); // G10
    reentrancyContract(makeStore);
    holdingContract(makeStore);
    fairnessContract(makeStore);
    localQueueContract(makeStore);
    localTermsContract(makeStore);
    localOutageContract(makeStore);
    shutdownContract(makeStore);
  });
}
