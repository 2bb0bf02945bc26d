import { MUTEX, type Kind } from './kinds.js';
import { leaseDriverContract } from './lease-driver.contract.js';
import { offersContract } from './mutex.offers.contract.js';
import { cleanupContract } from './mutex.cleanup.contract.js';
import { contextsContract } from './mutex.contexts.contract.js';
import { entryContract } from './mutex.entry.contract.js';
import { exclusionContract } from './mutex.exclusion.contract.js';
import { fairnessContract } from './mutex.fairness.contract.js';
import { handOverContract } from './mutex.hand-over.contract.js';
import { holdingContract } from './mutex.holding.contract.js';
import { listenersContract } from './mutex.listeners.contract.js';
import { localContenderContract } from './mutex.local-contender.contract.js';
import { localOutageContract } from './mutex.local-outage.contract.js';
import { localQueueContract } from './mutex.local-queue.contract.js';
import { localTermsContract } from './mutex.local-terms.contract.js';
import { patienceContract } from './mutex.patience.contract.js';
import { reentrancyContract } from './mutex.reentrancy.contract.js';
import { repetitionContract } from './mutex.repetition.contract.js';
import { resultsContract } from './mutex.results.contract.js';
import { shutdownContract } from './mutex.shutdown.contract.js';
import { turnsContract } from './mutex.turns.contract.js';
import { validityContract } from './mutex.validity.contract.js';
import { yieldContract } from './mutex.yield.contract.js';
import type { MakeStore } from './open-locks.js';

type Remains = () => Promise<string[]> | string[];

/**
 * Everything that a mutex promises, on one store.
 *
 * @param makeStore opens the store once more, onto the same data: each is closed when its test ends.
 * @param remains names what there is at the store that does not expire by itself within an hour.
 */
export function mutexContract(name: string, makeStore: MakeStore, remains: Remains): void {
  mutexContractOf(MUTEX, name, makeStore, remains);
}

/** The same of another kind of lock that one holds alone. */
export function mutexContractOf(kind: Kind, name: string, makeStore: MakeStore, remains: Remains): void {
  describe(`a ${kind.name} on ${name}`, () => {
    exclusionContract(makeStore, kind); // G2 G5
    validityContract(makeStore, kind); // G3 G4
    resultsContract(makeStore, kind); // G10
    reentrancyContract(makeStore, kind);
    // The rest is about how one waits, about minHold and about closing: the leader election has a contract of its own for these.
    if (kind.isElected) return;
    leaseDriverContract(makeStore, kind);
    offersContract(makeStore, kind);
    entryContract(makeStore, kind); // G1
    repetitionContract(makeStore, kind); // G6
    cleanupContract(makeStore, kind, remains); // G7
    handOverContract(makeStore, kind); // G8
    patienceContract(makeStore, kind); // G9
    holdingContract(makeStore, kind);
    contextsContract(makeStore, kind);
    fairnessContract(makeStore, kind);
    localTermsContract(makeStore, kind);
    localOutageContract(makeStore, kind);
    shutdownContract(makeStore, kind);
    // The callers of one process wait for each other, and one of them asks the store for all.
    if (kind.isAlone) return;
    localQueueContract(makeStore, kind);
    localContenderContract(makeStore, kind);
    listenersContract(makeStore, kind);
    // Requests that a driver of shared keys has not.
    if (kind.share) return;
    turnsContract(makeStore, kind);
    yieldContract(makeStore, kind); // G4
  });
}
