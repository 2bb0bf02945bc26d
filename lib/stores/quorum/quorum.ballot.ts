import { LockError, LockLostError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from '../../core/store/lease-driver.js';
import type { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { now } from '../../core/util/clock.js';
import type { Known } from './quorum.held.js';
import type { Member } from './quorum.member.js';
import { Poll, type OpenPoll } from './quorum.poll.js';
import { acquireOutcome, tokenOf, type AcquireOutcome, type Vote } from './quorum.votes.js';

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
  /** The members that have granted the key, also where that does not count. */
  private readonly grants = new Set<number>();
  /** The first token of each member. */
  private readonly firsts: (number | null | undefined)[] = [];
  /** The smallest token that each member was asked for last. None is asked for the same once more: a ballot has an end, whatever they answer. */
  private readonly floors: number[] = [];
  private result: BallotResult | undefined;

  /**
   * @param known of this owner, also from before.
   * @param isHeld whether the owner has not given the key back since it was granted.
   */
  constructor(
    private readonly electorate: Electorate,
    private readonly request: AcquireRequest,
    private readonly known: Known,
    private readonly isHeld: () => boolean,
  ) {
    const { members, deadlines } = electorate;
    this.poll = new Poll(request.key, members, deadlines, (votes) => this.outcomeOf(votes));
  }

  get votes(): readonly Vote<AcquireReply>[] {
    return this.poll.votes;
  }

  /** Ends as soon as the result is certain. */
  async hold(): Promise<BallotResult> {
    for (const index of this.electorate.members.keys()) this.ask(index, this.request.floor ?? 0);
    const result = (this.result = await this.poll.decided);
    // Nobody can have given the key back yet.
    for (const index of this.electorate.members.keys()) this.settle(index, this.votes[index], true);
    return result;
  }

  private outcomeOf(votes: readonly Vote<AcquireReply>[]): BallotResult | undefined {
    const outcome = acquireOutcome(votes, this.firsts);
    if (outcome.kind === 'open') return undefined;
    if (outcome.kind !== 'raise') return outcome;
    if (this.poll.isOver) return { kind: 'silent' };
    this.raise(outcome.token);
    return undefined;
  }

  /** A first token that comes later can only make the one smaller that is to be recorded. */
  private raise(token: number): void {
    const smaller = [...this.electorate.members.keys()].filter((index) => this.isBelow(index, token));
    this.poll.reopen(smaller);
    for (const index of smaller) this.ask(index, token);
  }

  private ask(index: number, floor: number): void {
    this.floors[index] = floor;
    // The doubt is part of the request: the next one of this owner must not be answered before this vote is settled.
    this.member(index)
      .inOrder(this.request, () => this.vote(index))
      .then(
        (reply) => this.answered(index, reply),
        (error: LockError) => {
          if (!(error instanceof StoreError && error.isUnsent) && !this.known.has(index)) this.known.set(index, false);
          this.answered(index, error);
        },
      );
  }

  /** Asks once more, as long as the owner has the key, what a member has said nothing about: its vote may be one of a majority later. */
  private askAgain(index: number): void {
    const { key, ttl } = this.request;
    const { token } = this.result as { token: number | null };
    this.floors[index] = Math.max(this.floors[index] as number, token ?? 0);
    const vote = (): Promise<AcquireReply | LockError> => {
      if (!this.isHeld()) throw new LockLostError(`"${key}" was given back.`, { key });
      return this.vote(index);
    };
    // Later, renewals take care of it.
    this.member(index)
      .again(this.request, now() + ttl, vote)
      .then(
        (reply) => this.answered(index, reply),
        () => undefined,
      );
  }

  private async vote(index: number): Promise<AcquireReply | LockError> {
    const { request, electorate } = this;
    const member = this.member(index);
    const sentAt = now();
    // Once the result is known nobody waits here any more.
    const queue = request.queue && !this.result;
    const reply = await electorate.driverOf(member).acquire({ ...request, queue, floor: this.floors[index] });
    if (reply.granted) this.grants.add(index);
    const doubt = reply.granted && member.mayForget && (await member.doubt(request.key, sentAt));
    this.known.set(index, reply.granted && !doubt);
    return doubt || reply;
  }

  private answered(index: number, vote: AcquireReply | LockError): void {
    this.firsts[index] ??= tokenOf(vote);
    this.poll.vote(index, vote);
    if (this.result) this.settle(index, vote, this.isHeld());
  }

  /** What becomes of a vote when the result is known. A later request of the same owner takes care of it, if there is one. */
  private settle(index: number, vote: Vote<AcquireReply>, isHeld: boolean): void {
    const { result, request } = this;
    if (this.member(index).isAsked(request.owner)) return;
    if (result?.kind !== 'granted') {
      // Two that each have a place where the other one has a vote would only exchange their votes.
      const isQueued = request.queue && result?.kind === 'taken' && result.isSplit && isReply(vote);
      if (this.grants.delete(index) || isQueued || (!request.queue && !isReply(vote) && this.known.has(index))) this.leave(index);
    } else if (isReply(vote) && !vote.granted) {
      // Its place would be offered the key, which nobody waits for any more.
      if (request.queue) this.leave(index);
    } else if (isHeld && this.isUnknown(index, vote)) {
      this.askAgain(index);
    } else if (this.isBelow(index, result.token ?? 0, vote) && isHeld) {
      // It may become one of the majority.
      this.ask(index, result.token ?? 0);
    }
  }

  /** Whether the member may have granted the key, or keep a place for the owner, and no answer tells. */
  private isUnknown(index: number, vote: Vote<AcquireReply>): boolean {
    return !isReply(vote) && this.known.get(index) === false && !this.grants.has(index);
  }

  /** Whether the member has granted a smaller token, and was not asked for this one. */
  private isBelow(index: number, token: number, vote = this.votes[index]): boolean {
    return (this.floors[index] as number) < token && (tokenOf(vote) ?? token) < token;
  }

  private leave(index: number): void {
    const { key, owner, ttl } = this.request;
    const member = this.member(index);
    const driver = this.electorate.driverOf(member);
    this.known.set(index, false);
    const end = now() + Math.max(ttl, driver.queueEntryLifetime);
    member.giveBack(this.request, end, () => driver.leave({ key, owner })).catch(() => undefined);
  }

  private member(index: number): Member {
    return this.electorate.members[index] as Member;
  }
}

function isReply(vote: Vote<AcquireReply>): vote is AcquireReply {
  return vote !== undefined && !(vote instanceof LockError);
}
