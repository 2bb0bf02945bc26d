import type { Locks } from '../../locks.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import { LeaderCandidate } from './leader-candidate.js';

/** An app's candidates: one for each pair of election and store that its methods use. They campaign from bootstrap to shutdown. */
export class LeaderCandidates {
  private readonly candidates = new Map<Locks, Map<string, LeaderCandidate>>();
  private areStanding = false;

  /** @throws {LockConfigError} if the name makes no key, or methods of one election differ in its options. */
  of(definition: LockDefinition, locks: Locks, warn: (message: string) => void): LeaderCandidate {
    const { election = '' } = definition;
    const ofStore = this.candidates.get(locks) ?? new Map<string, LeaderCandidate>();
    this.candidates.set(locks, ofStore);
    const candidate = ofStore.get(election) ?? new LeaderCandidate(locks, election, warn);
    candidate.join(definition);
    ofStore.set(election, candidate);
    // The module of this method was loaded after the bootstrap.
    if (this.areStanding) candidate.stand();
    return candidate;
  }

  stand(): void {
    this.areStanding = true;
    for (const ofStore of this.candidates.values()) for (const candidate of ofStore.values()) candidate.stand();
  }
}
