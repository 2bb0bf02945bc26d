import { LockError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from '../../core/store/lease-driver.js';
import type { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { now } from '../../core/util/clock.js';
import type { Member } from './quorum.member.js';
import { Poll, type OpenPoll } from './quorum.poll.js';
import { acquireOutcome, type AcquireOutcome, type Vote } from './quorum.votes.js';

export type BallotResult = Exclude<AcquireOutcome, { kind: 'raise' | 'open' }>;

/**
 * One acquire at all members. Without a majority, the votes are given back: also those that arrive late, and those of which nothing is known.
 */
export class Ballot {
  private readonly poll: Poll<AcquireReply, BallotResult>;
  /** The members that have, or may have, granted the key. */
  private readonly grants = new Set<number>();
  private result: BallotResult | undefined;

  /** @param isHeld whether the owner has not given the key back since. */
  constructor(
    private readonly members: readonly Member[],
    private readonly driverOf: (member: Member) => LeaseDriver,
    private readonly request: AcquireRequest,
    deadlines: RequestDeadlines<OpenPoll>,
    private readonly isHeld: () => boolean,
  ) {
    this.poll = new Poll(request.key, members, deadlines, (votes) => this.outcomeOf(votes));
  }

  get votes(): readonly Vote<AcquireReply>[] {
    return this.poll.votes;
  }

  /** Ends as soon as the result is certain. */
  async hold(): Promise<BallotResult> {
    for (const index of this.members.keys()) this.ask(index, this.request.floor ?? 0);
    const result = (this.result = await this.poll.decided);
    for (const index of this.members.keys()) this.settle(index);
    return result;
  }

  private outcomeOf(votes: readonly Vote<AcquireReply>[]): BallotResult | undefined {
    const outcome = acquireOutcome(votes);
    if (outcome.kind === 'raise') this.raise(outcome.token);
    else if (outcome.kind !== 'open') return outcome;
    return undefined;
  }

  /** A token counts when a majority has recorded it. */
  private raise(token: number): void {
    const smaller = [...this.members.keys()].filter((index) => isBelow(this.votes[index], token));
    this.poll.reopen(smaller);
    for (const index of smaller) this.ask(index, token);
  }

  private ask(index: number, floor: number): void {
    const member = this.members[index] as Member;
    const driver = this.driverOf(member);
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
    const { result, request, members } = this;
    if ((members[index] as Member).isAsked(request)) return;
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
    const member = this.members[index] as Member;
    member.inOrder(this.request, () => this.driverOf(member).leave({ key, owner })).catch(() => undefined);
  }
}

function isReply(vote: Vote<AcquireReply>): vote is AcquireReply {
  return vote !== undefined && !(vote instanceof LockError);
}

/** Whether the member has granted a smaller token. */
function isBelow(vote: Vote<AcquireReply>, token: number): boolean {
  return isReply(vote) && vote.granted && vote.token !== null && vote.token < token;
}
