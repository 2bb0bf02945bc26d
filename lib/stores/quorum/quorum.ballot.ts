import { LockError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from '../../core/store/lease-driver.js';
import type { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { now } from '../../core/util/clock.js';
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
  /** The members that have, or may have, granted the key. */
  private readonly grants = new Set<number>();
  /** The first token of each member. */
  private readonly firsts: (number | null | undefined)[] = [];
  /** The smallest token that each member was asked for last. None is asked for the same once more: a ballot has an end, whatever they answer. */
  private readonly floors: number[] = [];
  private result: BallotResult | undefined;

  /** @param isHeld whether the owner has not given the key back since it was granted. */
  constructor(
    private readonly electorate: Electorate,
    private readonly request: AcquireRequest,
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
    const member = this.electorate.members[index] as Member;
    const driver = this.electorate.driverOf(member);
    this.floors[index] = floor;
    const sentAt = now();
    const vote = async (): Promise<AcquireReply | LockError> => {
      // Once the result is known nobody waits here any more.
      const queue = this.request.queue && !this.result;
      const reply = await driver.acquire({ ...this.request, queue, floor });
      if (!reply.granted) return reply;
      this.grants.add(index);
      return (member.mayForget && (await member.doubt(this.request.key, sentAt))) || reply;
    };
    // The doubt is part of the request: the next one of this owner must not be answered before this vote is settled.
    member.inOrder(this.request, vote).then(
      (reply) => this.answered(index, reply),
      (error: LockError) => {
        if (mayBeApplied(error) && !this.request.queue) this.grants.add(index);
        this.answered(index, error);
      },
    );
  }

  private answered(index: number, vote: AcquireReply | LockError): void {
    this.firsts[index] ??= tokenOf(vote);
    this.poll.vote(index, vote);
    if (this.result) this.settle(index, vote, this.isHeld());
  }

  /** What becomes of a vote when the result is known. A later request of the same owner takes care of it, if there is one. */
  private settle(index: number, vote: Vote<AcquireReply>, isHeld: boolean): void {
    const { result, request, electorate } = this;
    if ((electorate.members[index] as Member).isAsked(request.owner)) return;
    if (result?.kind !== 'granted') {
      // Two that each have a place where the other one has a vote would only exchange their votes.
      const isQueued = request.queue && result?.kind === 'taken' && result.isSplit && isReply(vote);
      if (this.grants.delete(index) || isQueued) this.leave(index);
    } else if (request.queue && !this.grants.has(index) && mayBeApplied(vote)) {
      // Its place would be offered the key, which nobody waits for any more.
      this.leave(index);
    } else if (this.isBelow(index, result.token ?? 0, vote) && isHeld) {
      // It may become one of the majority.
      this.ask(index, result.token ?? 0);
    }
  }

  /** Whether the member has granted a smaller token, and was not asked for this one. */
  private isBelow(index: number, token: number, vote = this.votes[index]): boolean {
    return (this.floors[index] as number) < token && (tokenOf(vote) ?? token) < token;
  }

  private leave(index: number): void {
    const { key, owner, ttl } = this.request;
    const member = this.electorate.members[index] as Member;
    const driver = this.electorate.driverOf(member);
    const end = now() + Math.max(ttl, driver.placeLifetime);
    member.giveBack(this.request, end, () => driver.leave({ key, owner })).catch(() => undefined);
  }
}

function mayBeApplied(vote: Vote<AcquireReply>): boolean {
  return !(vote instanceof StoreError && vote.isUnsent);
}

function isReply(vote: Vote<AcquireReply>): vote is AcquireReply {
  return vote !== undefined && !(vote instanceof LockError);
}
