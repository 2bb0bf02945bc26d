import { latchCallsContract } from './count-down-latch.calls.contract.js';
import { latchCountingContract } from './count-down-latch.counting.contract.js';
import { latchDriverContract } from './count-down-latch.driver.contract.js';
import { latchPatienceContract } from './count-down-latch.patience.contract.js';
import { latchWaitingContract } from './count-down-latch.waiting.contract.js';
import { type MakeStore, where } from './open-locks.js';

/**
 * Everything that a count-down latch promises, on one store.
 *
 * @param makeStore as for {@link mutexContract}.
 * @param waitersOf names those who are noted at the store to wait for the latch.
 */
export function countDownLatchContract(name: string, makeStore: MakeStore, waitersOf: (key: string) => Promise<string[]> | string[]): void {
  describe(`a count-down latch on ${name}`, () => {
    latchDriverContract(makeStore);
    latchCountingContract(makeStore); // G6
    latchCallsContract(makeStore); // G9
    where(makeStore, 'wakeUps', () => {
      latchWaitingContract(makeStore, waitersOf); // G7 G8
      latchPatienceContract(makeStore, waitersOf); // G7 G9
    });
  });
}
