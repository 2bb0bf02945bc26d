import { type LockError, messageOf, ownCopyOf, QuorumError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest } from '../../core/store/lease-driver.js';
import { after, dateOf, now } from '../../core/util/clock.js';
import { Ballot } from './quorum.ballot.js';
import type { AskedMembers } from './quorum.leases.js';
import type { Electorate } from './quorum.poll.js';
import { finalError, tokenOf, type Vote } from './quorum.votes.js';

/** Microseconds by which tokens are asked for ahead of our clock at first: what a request may take. */
const FIRST_LEAD = 5_000;
/** Microseconds by which the lead shrinks with each token that was not too small, so that a slow request, or another process, does not add to it for good. */
const DECAY = 10;
/** A reply that took more milliseconds says nothing about the clock of its member. */
const LONGEST_TRIP = 50;
/** Milliseconds, doubled for each round. */
const SHORTEST_PAUSE = 10;
const MOST_DOUBLINGS = 6;

/** Holds ballots until the key is granted or somebody else has it. */
export class BallotRounds {
  /** Rounds in which no owner had a majority, and this one had votes. */
  splitVotes = 0;
  /** Microseconds by which a member was ahead of our clock. With it, all members usually give the token that is asked for. */
  private lead = FIRST_LEAD;
  /** Microseconds since 1970 at the zero of the monotonic clock: a whole millisecond would ask for the same token again, which takes the server longer. */
  private readonly zero = dateOf(0) * 1000;

  /**
   * @param requestTimeout milliseconds until an acquire must be answered.
   * @param isReader it gets the token of the last write, so that it asks for none.
   */
  constructor(
    private readonly electorate: Electorate,
    private readonly requestTimeout: number,
    private readonly isReader: boolean,
  ) {}

  /** @param asked and `isHeld`: see {@link Ballot}. */
  async elect(request: AcquireRequest, asked: AskedMembers, isHeld: () => boolean): Promise<AcquireReply> {
    const { electorate } = this;
    // A ballot and the recording of its token take one memberTimeout each.
    const lastRound = now() + this.requestTimeout - 2 * electorate.deadlines.requestTimeout;
    for (let round = 0; ; round++) {
      const sentAt = now();
      const floor = this.floorOf(request, sentAt);
      const ballot = new Ballot(electorate, request, floor, asked, isHeld);
      const result = await ballot.hold();
      this.learn(ballot.votes, floor, sentAt);
      if (result.kind === 'granted') return { granted: true, token: result.token };
      if (result.kind === 'misused') throw ownCopyOf(result.error, request.key);
      if (result.kind === 'silent') throw outageOf(request.key, ballot.votes);
      if (result.isSplit) this.splitVotes++;
      const pause = Math.random() * SHORTEST_PAUSE * 2 ** Math.min(round, MOST_DOUBLINGS);
      if (!result.isSplit || now() + pause > lastRound) return result.reply;
      await new Promise<void>((resolve) => void after(pause, resolve));
    }
  }

  /** A hint that spares the second trip: no token rests on our clock. */
  private floorOf({ floor = 0 }: AcquireRequest, time: number): number {
    return this.isReader ? floor : Math.max(floor, this.microsAt(time) + this.lead);
  }

  private microsAt(time: number): number {
    return this.zero + Math.ceil(time * 1000);
  }

  private learn(votes: readonly Vote<AcquireReply>[], floor: number, sentAt: number): void {
    if (this.isReader || now() > sentAt + LONGEST_TRIP) return;
    const token = Math.max(0, ...votes.map((vote) => tokenOf(vote) ?? 0));
    if (token > floor) this.lead = Math.max(this.lead, token - this.microsAt(sentAt));
    else if (token > 0) this.lead = Math.max(FIRST_LEAD, this.lead - DECAY);
  }
}

/** Too few answers; or the error of so many that no retry can help. */
export function outageOf(key: string, votes: readonly Vote<AcquireReply | string>[]): LockError {
  const final = finalError(votes);
  if (final) return ownCopyOf(final, key);
  const answers = votes.map((vote, index) => {
    if (vote === undefined) return new StoreError(`Member ${index + 1} had not answered when that was certain.`, { key, transient: true });
    if (typeof vote === 'string') return vote;
    // A request for many keys has failed with one error.
    return 'granted' in vote ? (vote.granted ? 'granted' : 'taken') : ownCopyOf(vote, key);
  });
  const told = answers.map((vote) => (typeof vote === 'string' ? `${vote}.` : messageOf(vote)));
  return new QuorumError(`No majority of the ${votes.length} members decided about "${key}": ${told.join(' ')}`, { key, votes: answers });
}
