import '../support/virtual-time.js';
import { latchCallsContract } from './count-down-latch.calls.contract.js';
import { latchCountingContract } from './count-down-latch.counting.contract.js';
import { latchPatienceContract } from './count-down-latch.patience.contract.js';
import { latchWaitingContract } from './count-down-latch.waiting.contract.js';
import { MULTI_LOCK, MUTEX, semaphoreOf, SEMAPHORE_OF_ONE, sideOf } from './kinds.js';
import { leaderEndsContract } from './leader-election.ends.contract.js';
import { leaderLossContract } from './leader-election.loss.contract.js';
import { leaderTermsContract } from './leader-election.terms.contract.js';
import { multiLeaseContract } from './multi-lock.lease.contract.js';
import { multiLockTakingContract } from './multi-lock.taking.contract.js';
import { multiLockTiesContract } from './multi-lock.ties.contract.js';
import { cleanupContract } from './mutex.cleanup.contract.js';
import { contextsContract } from './mutex.contexts.contract.js';
import { entryContract } from './mutex.entry.contract.js';
import { fairnessContract } from './mutex.fairness.contract.js';
import { handOverContract } from './mutex.hand-over.contract.js';
import { holdingContract } from './mutex.holding.contract.js';
import { listenersContract } from './mutex.listeners.contract.js';
import { localContenderContract } from './mutex.local-contender.contract.js';
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
import { type MakeStore, where } from './open-locks.js';
import { readWriteExclusionContract } from './read-write-lock.exclusion.contract.js';
import { readWriteReentrancyContract } from './read-write-lock.reentrancy.contract.js';
import { semaphoreExclusionContract } from './semaphore.exclusion.contract.js';
import { sharedLeaseContract } from './shared-lease.contract.js';

type Names = (key: string) => Promise<string[]> | string[];

/**
 * What the engine makes of a store, on virtual time: once, and once where a store offers less. Each kind of lock by what differs.
 *
 * @param remains names what there is at the store that does not expire by itself within an hour.
 * @param waitersOf names those who are noted at the store to wait for the latch.
 */
export function engineContract(name: string, makeStore: MakeStore, remains: () => Promise<string[]> | string[], waitersOf: Names): void {
  describe(`a mutex on ${name}`, () => {
    entryContract(makeStore, MUTEX); // G1
    validityContract(makeStore, MUTEX); // G3 G4
    yieldContract(makeStore, MUTEX); // G4
    repetitionContract(makeStore, MUTEX); // G6
    cleanupContract(makeStore, MUTEX, remains); // G7
    handOverContract(makeStore, MUTEX); // G8
    patienceContract(makeStore, MUTEX); // G9
    resultsContract(makeStore, MUTEX); // G10
    reentrancyContract(makeStore, MUTEX);
    holdingContract(makeStore, MUTEX);
    contextsContract(makeStore, MUTEX);
    fairnessContract(makeStore, MUTEX);
    localTermsContract(makeStore, MUTEX);
    localContenderContract(makeStore, MUTEX);
    localQueueContract(makeStore, MUTEX);
    turnsContract(makeStore, MUTEX);
    listenersContract(makeStore, MUTEX);
    shutdownContract(makeStore, MUTEX);
  });
  describe(`a read/write lock on ${name}`, () => {
    readWriteExclusionContract(makeStore);
    readWriteReentrancyContract(makeStore);
    sharedLeaseContract(makeStore, sideOf('read'), sideOf('write'), remains);
  });
  where(makeStore, 'semaphore', () => {
    describe(`a semaphore on ${name}`, () => {
      semaphoreExclusionContract(makeStore);
      sharedLeaseContract(makeStore, semaphoreOf(3), semaphoreOf(3, 3), remains);
      // A permit is passed on in a process as a key is.
      localQueueContract(makeStore, SEMAPHORE_OF_ONE);
    });
  });
  describe(`a multi-lock on ${name}`, () => {
    multiLockTakingContract(makeStore, remains);
    multiLeaseContract(makeStore);
    multiLockTiesContract(makeStore);
  });
  describe(`a multi-lock of one on ${name}`, () => {
    entryContract(makeStore, MULTI_LOCK);
    validityContract(makeStore, MULTI_LOCK);
    resultsContract(makeStore, MULTI_LOCK);
  });
  describe(`a leader election on ${name}`, () => {
    leaderTermsContract(makeStore);
    leaderLossContract(makeStore);
    leaderEndsContract(makeStore, remains);
  });
  where(makeStore, 'countDownLatch', () => {
    describe(`a count-down latch on ${name}`, () => {
      latchCountingContract(makeStore); // G6
      latchCallsContract(makeStore); // G9
      where(makeStore, 'wakeUps', () => {
        latchWaitingContract(makeStore, waitersOf); // G7 G8
        latchPatienceContract(makeStore, waitersOf); // G7 G9
      });
    });
  });
}
