import { LockError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from '../../core/store/lease-driver.js';
import type { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { now } from '../../core/util/clock.js';
import type { Member } from './quorum.member.js';
import { Poll, type OpenPoll } from './quorum.poll.js';
import { acquireOutcome, type AcquireOutcome, type Vote } from './quorum.votes.js';

/** Microseconds. */
const HEADROOM = 1000;

/** What a ballot is held with. */
export interface Electorate {
  readonly members: readonly Member[];
  readonly driverOf: (member: Member) => LeaseDriver;
  readonly deadlines: RequestDeadlines<OpenPoll>;
  /** A reader gets the token of the last write: it asks for none. */
  readonly isReader: boolean;
}

export type BallotResult = Exclude<AcquireOutcome, { kind: 'raise' | 'open' }>;

/**
 * One acquire at all members. Without a majority, the votes are given back: also those that arrive late, and those of which nothing is known.
 */
export class Ballot {
  private readonly poll: Poll<AcquireReply, BallotResult>;
  /** The members that have, or may have, granted the key. */
  private readonly grants = new Set<number>();
  private result: BallotResult | undefined;
  /** No member is asked for a smaller token any more. */
  private floor: number;
  private readonly beganAt = now();

  /** @param isHeld whether the owner has not given the key back since it was granted. */
  constructor(
    private readonly electorate: Electorate,
    private readonly request: AcquireRequest,
    private readonly isHeld: () => boolean,
  ) {
    const { members, deadlines } = electorate;
    this.floor = request.floor ?? 0;
    this.poll = new Poll(request.key, members, deadlines, (votes) => this.outcomeOf(votes));
  }

  get votes(): readonly Vote<AcquireReply>[] {
    return this.poll.votes;
  }

  /** Ends as soon as the result is certain. */
  async hold(): Promise<BallotResult> {
    for (const index of this.electorate.members.keys()) this.ask(index, this.floor);
    const result = (this.result = await this.poll.decided);
    for (const index of this.electorate.members.keys()) this.settle(index);
    return result;
  }

  private outcomeOf(votes: readonly Vote<AcquireReply>[]): BallotResult | undefined {
    const outcome = acquireOutcome(votes);
    if (outcome.kind === 'raise') this.raise(outcome.token);
    else if (outcome.kind !== 'open') return outcome;
    return undefined;
  }

  /**
   * A token counts when a majority has recorded it. The clock of a member has gone on meanwhile, and it would give a larger one: so a later one is asked
   * for, by twice the time that has passed, but not while answers to the last floor are under way: each would make the next one late. A reader gets
   * the token that is there.
   */
  private raise(token: number): void {
    if (this.electorate.isReader) this.floor = token;
    else if (token > this.floor) this.floor = token + Math.ceil(2000 * (now() - this.beganAt)) + HEADROOM;
    const { floor } = this;
    const smaller = [...this.electorate.members.keys()].filter((index) => isBelow(this.votes[index], floor));
    this.poll.reopen(smaller);
    for (const index of smaller) this.ask(index, floor);
  }

  private ask(index: number, floor: number): void {
    const member = this.electorate.members[index] as Member;
    const driver = this.electorate.driverOf(member);
    const sentAt = now();
    member
      .inOrder(this.request, () => driver.acquire({ ...this.request, floor }))
      .then(
        (reply) => {
          if (!reply.granted) return this.answered(index, reply);
          this.grants.add(index);
          if (!member.mayForget) return this.answered(index, reply);
          void member.doubt(this.request.key, sentAt).then((why) => this.answered(index, why ?? reply));
        },
        (error: LockError) => {
          if (!(error instanceof StoreError && error.isUnsent) && !this.request.queue) this.grants.add(index);
          this.answered(index, error);
        },
      );
  }

  private answered(index: number, vote: AcquireReply | LockError): void {
    this.poll.vote(index, vote);
    if (this.result) this.settle(index, vote);
  }

  /** What becomes of a vote when the result is known. A later request of the same owner takes care of it, if there is one. */
  private settle(index: number, vote = this.votes[index]): void {
    const { result, request, electorate } = this;
    if ((electorate.members[index] as Member).isAsked(request)) return;
    if (result?.kind !== 'granted') {
      if (this.grants.delete(index)) this.leave(index);
    } else if (isReply(vote) && !vote.granted) {
      // Its place would be offered the key, which nobody waits for any more.
      if (request.queue) this.leave(index);
    } else if (isBelow(vote, result.token ?? 0) && this.isHeld()) {
      // It may become one of the majority.
      this.ask(index, result.token ?? 0);
    }
  }

  private leave(index: number): void {
    const { key, owner } = this.request;
    const member = this.electorate.members[index] as Member;
    member.inOrder(this.request, () => this.electorate.driverOf(member).leave({ key, owner })).catch(() => undefined);
  }
}

function isReply(vote: Vote<AcquireReply>): vote is AcquireReply {
  return vote !== undefined && !(vote instanceof LockError);
}

/** Whether the member has granted a smaller token. */
function isBelow(vote: Vote<AcquireReply>, token: number): boolean {
  return isReply(vote) && vote.granted && vote.token !== null && vote.token < token;
}
