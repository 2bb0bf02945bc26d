import { LockError, ownCopyOf, QuorumError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from '../../core/store/lease-driver.js';
import type { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { after, dateOf, now } from '../../core/util/clock.js';
import { Ballot } from './quorum.ballot.js';
import type { Member } from './quorum.member.js';
import type { OpenPoll } from './quorum.poll.js';
import { finalError, type Vote } from './quorum.votes.js';

/** Microseconds by which tokens are asked for ahead of our clock at first: what a request may take. */
const FIRST_LEAD = 5_000;
/** A reply that took more milliseconds says nothing about the clock of its member. */
const LONGEST_TRIP = 50;
/** Milliseconds, doubled for each round. */
const SHORTEST_PAUSE = 10;
const MOST_DOUBLINGS = 6;

/** What a ballot is held with. */
export interface Electorate {
  readonly members: readonly Member[];
  readonly driverOf: (member: Member) => LeaseDriver;
  readonly deadlines: RequestDeadlines<OpenPoll>;
  /** Milliseconds until an acquire must be answered. */
  readonly requestTimeout: number;
  /** A reader gets the token of the last write: it asks for none. */
  readonly isReader: boolean;
}

/** Holds ballots until the key is granted or somebody else has it. */
export class Election {
  /** Rounds in which no owner had a majority, and this one had votes. */
  splitVotes = 0;
  /** Microseconds by which the clock of a member was ahead of ours, at most. With it, all members usually give the token that is asked for. */
  private lead = FIRST_LEAD;

  constructor(private readonly electorate: Electorate) {}

  /** @param isHeld whether the owner has not given the key back since it was granted. */
  async elect(request: AcquireRequest, isHeld: () => boolean): Promise<AcquireReply> {
    const { members, driverOf, deadlines, requestTimeout } = this.electorate;
    // A ballot and the recording of its token take one memberTimeout each.
    const lastRound = now() + requestTimeout - 2 * deadlines.requestTimeout;
    for (let round = 0; ; round++) {
      const sentAt = now();
      const ballot = new Ballot(members, driverOf, { ...request, floor: this.floorOf(request) }, deadlines, isHeld);
      const result = await ballot.hold();
      this.learn(ballot.votes, sentAt);
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
  private floorOf({ floor = 0 }: AcquireRequest): number {
    return this.electorate.isReader ? floor : Math.max(floor, dateOf(now()) * 1000 + this.lead);
  }

  private learn(votes: readonly Vote<AcquireReply>[], sentAt: number): void {
    if (this.electorate.isReader || now() > sentAt + LONGEST_TRIP) return;
    const micros = dateOf(sentAt) * 1000;
    for (const vote of votes) {
      if (vote && 'granted' in vote && vote.granted && vote.token !== null) this.lead = Math.max(this.lead, vote.token - micros);
    }
  }
}

/** Too few answers; or the error of so many that no retry can help. */
export function outageOf(key: string, votes: readonly Vote<AcquireReply | string>[]): LockError {
  const final = finalError(votes);
  if (final) return ownCopyOf(final, key);
  const told = votes.map((vote) => (typeof vote === 'object' && 'granted' in vote ? (vote.granted ? 'granted' : 'taken') : vote));
  const answers = told.filter((vote) => typeof vote === 'string').length;
  const reasons = told.flatMap((vote) => (vote instanceof LockError ? vote.message : []));
  const message = `Only ${answers} of ${votes.length} members answered for "${key}": ${reasons.join(' ')}`;
  return new QuorumError(message, { key, votes: told });
}
