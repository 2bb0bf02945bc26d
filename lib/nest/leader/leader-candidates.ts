import { naming, type LockPlan, type Registered } from '../aspect/lock-plan.js';
import type { Locks } from '../../locks.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import { LeaderCandidate } from './leader-candidate.js';

/** An app's candidates: one for each pair of election and store that its methods use. They campaign from bootstrap to shutdown. */
export class LeaderCandidates {
  private readonly candidates = new Map<Locks, Map<string, LeaderCandidate>>();
  private areStanding = false;

  /**
   * The plan of a method that only the leader runs. Other instances skip it.
   *
   * @throws {LockConfigError} if the name is not a valid key, or methods of one election differ in its options.
   */
  planFor(definition: LockDefinition, registered: Registered): LockPlan {
    const { where, options, returns } = definition;
    const { complete, defaults, log } = registered;
    const candidate = naming(where, () => this.candidateFor(definition, registered));
    return {
      options: { ...complete, onLost: options.onLost ?? complete.onLost, onTimeout: 'skip' },
      returns: returns ?? defaults.returns ?? 'promise',
      log,
      name: candidate.key,
      isNamedByClass: false,
      key: candidate.key,
      parts: 'none',
      keyOf: () => candidate.key,
      lockOf: () => candidate.lockFor(definition),
    };
  }

  stand(): void {
    this.areStanding = true;
    for (const ofStore of this.candidates.values()) for (const candidate of ofStore.values()) candidate.stand();
  }

  private candidateFor(definition: LockDefinition, { locks, log }: Registered): LeaderCandidate {
    const { election = '' } = definition;
    const ofStore = this.candidates.get(locks) ?? new Map<string, LeaderCandidate>();
    this.candidates.set(locks, ofStore);
    const candidate = ofStore.get(election) ?? new LeaderCandidate(locks, election, log);
    candidate.join(definition);
    ofStore.set(election, candidate);
    // The module of this method was loaded after the bootstrap.
    if (this.areStanding) candidate.stand();
    return candidate;
  }
}
