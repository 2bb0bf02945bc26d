import '../support/virtual-time.js';
import { latchCallsContract, latchCountingContract, latchExpiryContract } from './count-down-latch.calls.contract.js';
import { latchWaitingContract } from './count-down-latch.waiting.contract.js';
import { MUTEX, SEMAPHORE_OF_ONE, semaphoreOf, sideOf } from './kinds.js';
import { leaderEndsContract } from './leader-election.ends.contract.js';
import { leaderLossContract } from './leader-election.loss.contract.js';
import { leaderTermsContract } from './leader-election.terms.contract.js';
import { multiLeaseContract } from './multi-lock.lease.contract.js';
import { multiLockTakingContract } from './multi-lock.taking.contract.js';
import { multiLockTiesContract } from './multi-lock.ties.contract.js';
import { adoptionContract } from './mutex.adoption.contract.js';
import { cleanupContract } from './mutex.cleanup.contract.js';
import { entryContract, patienceContract } from './mutex.entry.contract.js';
import { handOverContract } from './mutex.hand-over.contract.js';
import { holdingContract } from './mutex.holding.contract.js';
import { contextsContract, listenersContract } from './mutex.listeners.contract.js';
import { localCallersContract } from './mutex.local-callers.contract.js';
import { localQueueContract } from './mutex.local-queue.contract.js';
import { reentrancyContract } from './mutex.reentrancy.contract.js';
import { repetitionContract } from './mutex.repetition.contract.js';
import { resultsContract } from './mutex.results.contract.js';
import { shutdownContract } from './mutex.shutdown.contract.js';
import { turnsContract, yieldContract } from './mutex.turns.contract.js';
import { validityContract } from './mutex.validity.contract.js';
import { type MakeStore, where } from './open-locks.js';
import { operatorsContract } from './operators.contract.js';
import { readWriteExclusionContract } from './read-write-lock.exclusion.contract.js';
import { readWriteReentrancyContract } from './read-write-lock.reentrancy.contract.js';
import { semaphoreExclusionContract } from './semaphore.exclusion.contract.js';
import { setting } from './setting.js';
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
    const mutex = setting(makeStore, MUTEX);
    entryContract(mutex); // G1
    validityContract(mutex); // G3 G4
    yieldContract(mutex); // G4
    repetitionContract(mutex); // G6
    cleanupContract(mutex, remains); // G7
    handOverContract(mutex); // G8
    patienceContract(mutex); // G9
    localCallersContract(mutex); // G7 G9
    resultsContract(mutex); // G10
    reentrancyContract(mutex);
    holdingContract(mutex);
    localQueueContract(mutex);
    turnsContract(mutex);
    contextsContract(mutex);
    listenersContract(mutex);
    shutdownContract(mutex);
    where(makeStore, 'adopt', () => adoptionContract(mutex, remains));
    where(makeStore, 'inspector', () => operatorsContract(mutex));
  });
  describe(`a read/write lock on ${name}`, () => {
    readWriteExclusionContract(setting(makeStore, sideOf('read')));
    readWriteReentrancyContract(makeStore);
    sharedLeaseContract(makeStore, sideOf('read'), sideOf('write'), remains);
  });
  where(makeStore, 'semaphore', () => {
    describe(`a semaphore on ${name}`, () => {
      semaphoreExclusionContract(makeStore);
      sharedLeaseContract(makeStore, semaphoreOf(3), semaphoreOf(3, 3), remains);
      // A permit is passed on in a process as a key is.
      localQueueContract(setting(makeStore, SEMAPHORE_OF_ONE));
    });
  });
  describe(`a multi-lock on ${name}`, () => {
    const keys = setting(makeStore);
    multiLockTakingContract(keys, remains);
    multiLeaseContract(keys);
    multiLockTiesContract(keys);
  });
  describe(`a multi-lock of one on ${name}`, () => {
    const one = setting(makeStore, { ...MUTEX, name: 'multi-lock of one', lockOf: (locks, key) => locks.multiLock([key]) });
    entryContract(one);
    validityContract(one);
    resultsContract(one);
  });
  describe(`a leader election on ${name}`, () => {
    const keys = setting(makeStore);
    leaderTermsContract(keys);
    leaderLossContract(keys);
    leaderEndsContract(keys, remains);
  });
  where(makeStore, 'countDownLatch', () => {
    describe(`a count-down latch on ${name}`, () => {
      latchCountingContract(makeStore); // G6
      latchCallsContract(makeStore); // G9
      where(makeStore, 'wakeUps', () => {
        latchWaitingContract(makeStore, waitersOf); // G7 G8 G9
        latchExpiryContract(makeStore, waitersOf);
      });
    });
  });
}
