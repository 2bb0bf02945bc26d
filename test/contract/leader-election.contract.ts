import { leaderEndsContract } from './leader-election.ends.contract.js';
import { leaderLossContract } from './leader-election.loss.contract.js';
import { leaderTermsContract } from './leader-election.terms.contract.js';
import type { MakeStore } from './open-locks.js';

/** Everything that a leader election promises, on one store. Parameters as of {@link mutexContract}. */
export function leaderElectionContract(name: string, makeStore: MakeStore, remains: () => Promise<string[]> | string[]): void {
  describe(`a leader election on ${name}`, () => {
    leaderTermsContract(makeStore);
    leaderLossContract(makeStore);
    leaderEndsContract(makeStore, remains);
  });
}
