import { LockError, LockLostError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest } from '../../core/store/lease-driver.js';
import { now } from '../../core/util/clock.js';
import type { AskedMembers } from './quorum.leases.js';
import { Poll, type Electorate } from './quorum.poll.js';
import { acquireOutcome, tokenOf, type AcquireOutcome, type Vote } from './quorum.votes.js';

export type BallotResult = Exclude<AcquireOutcome, { kind: 'raise' | 'open' }>;

/**
 * One acquire at all members. Without a majority, the votes are released: also those that arrive late, and those of which nothing is known.
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
   * @param asked by this owner, also before.
   * @param isHeld whether the owner has not released the key since it was granted.
   */
  constructor(
    private readonly electorate: Electorate,
    private readonly request: AcquireRequest,
    private readonly asked: AskedMembers,
    private readonly isHeld: () => boolean,
  ) {
    this.poll = new Poll(request.key, electorate, (votes) => this.outcomeOf(votes));
  }

  get votes(): readonly Vote<AcquireReply>[] {
    return this.poll.votes;
  }

  /** Ends as soon as the result is certain. */
  async hold(): Promise<BallotResult> {
    for (const index of this.votes.keys()) this.ask(index, this.request.floor ?? 0);
    const result = (this.result = await this.poll.decided);
    // The owner cannot have released the key yet.
    for (const [index, vote] of this.votes.entries()) this.settle(index, vote, true);
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
    const smaller = [...this.votes.keys()].filter((index) => this.isBelow(index, token));
    this.poll.reopen(smaller);
    for (const index of smaller) this.ask(index, token);
  }

  private ask(index: number, floor: number): void {
    this.floors[index] = floor;
    // The doubt is part of the request: the next one of this owner must not be answered before this vote is settled.
    this.electorate.voters[index]!.member.sendInOrder(this.request, () => this.vote(index)).then(
      (reply) => this.answered(index, reply),
      (error: LockError) => {
        if (!(error instanceof StoreError && error.isUnsent) && !this.asked.has(index)) this.asked.set(index, false);
        this.answered(index, error);
      },
    );
  }

  /** Repeats the request, as long as the owner has the key, at a member that has not answered: its vote may be one of a majority later. */
  private askAgain(index: number): void {
    const { key, ttl } = this.request;
    const { token } = this.result as { token: number | null };
    this.floors[index] = Math.max(this.floors[index] as number, token ?? 0);
    const vote = (): Promise<AcquireReply | LockError> => {
      if (!this.isHeld()) throw new LockLostError(`"${key}" was released.`, { key });
      return this.vote(index);
    };
    // Later, renewals take care of it.
    this.electorate.voters[index]!.member.sendAgain(this.request, now() + ttl, vote).then(
      (reply) => this.answered(index, reply),
      () => undefined,
    );
  }

  private async vote(index: number): Promise<AcquireReply | LockError> {
    const { request } = this;
    const { member, driver } = this.electorate.voters[index]!;
    const sentAt = now();
    // Once the result is known the owner does not wait here any more.
    const queue = request.queue && !this.result;
    const floor = this.floors[index];
    const isSame = queue === request.queue && floor === request.floor;
    const reply = await driver.acquire(isSame ? request : { ...request, queue, floor });
    if (reply.granted) this.grants.add(index);
    const doubt = reply.granted && member.mayForget && (await member.doubt(request.key, sentAt));
    this.asked.set(index, reply.granted && !doubt);
    return doubt || reply;
  }

  private answered(index: number, vote: AcquireReply | LockError): void {
    this.firsts[index] ??= tokenOf(vote);
    this.poll.vote(index, vote);
    if (this.result) this.settle(index, vote, this.isHeld());
  }

  /**
   * Handles a vote when the result is known. A later request of the same owner takes care of it, if there is one.
   *
   * | result | what the member has said | what it is asked |
   * |---|---|---|
   * | not granted | granted, also where it does not count | to release |
   * | not granted, and the votes are split | taken, and the owner queues there | to release |
   * | not granted | nothing, and the owner does not queue | to release |
   * | granted | taken, and the owner queues there | to release |
   * | granted | nothing that tells whether it has granted, or has recorded the token | the same again, while the key is held |
   * | granted | granted with a smaller token | to record the token, while the key is held |
   */
  private settle(index: number, vote: Vote<AcquireReply>, isHeld: boolean): void {
    const { result, request } = this;
    if (this.electorate.voters[index]!.member.isAsked(request.owner)) return;
    if (result?.kind !== 'granted') {
      // Two owners that each have a queue entry where the other one has a vote would only exchange their votes.
      const isQueued = request.queue && result?.kind === 'taken' && result.isSplit && isReply(vote);
      if (this.grants.delete(index) || isQueued || (!request.queue && !isReply(vote) && this.asked.has(index))) this.leave(index);
    } else if (isReply(vote) && !vote.granted) {
      // Its queue entry would be offered the key, for which it does not wait any more.
      if (request.queue) this.leave(index);
    } else if (isHeld && (this.isUnknown(index, vote) || this.isUnrecorded(index, vote, result.token ?? 0))) {
      this.askAgain(index);
    } else if (this.isBelow(index, result.token ?? 0, vote) && isHeld) {
      // It may become one of the majority.
      this.ask(index, result.token ?? 0);
    }
  }

  /** Whether the member may have granted the key, or have a queue entry of the owner, and no answer tells. */
  private isUnknown(index: number, vote: Vote<AcquireReply>): boolean {
    return !isReply(vote) && this.asked.get(index) === false && !this.grants.has(index);
  }

  /** Whether the member has granted a smaller token, and gave no answer when it was asked for this one. */
  private isUnrecorded(index: number, vote: Vote<AcquireReply>, token: number): boolean {
    return !isReply(vote) && (this.firsts[index] ?? token) < token;
  }

  /** Whether the member has granted a smaller token, and was not asked for this one. */
  private isBelow(index: number, token: number, vote = this.votes[index]): boolean {
    return (this.floors[index] as number) < token && (tokenOf(vote) ?? token) < token;
  }

  private leave(index: number): void {
    const { key, owner, ttl } = this.request;
    const { member, driver } = this.electorate.voters[index]!;
    this.asked.set(index, false);
    const end = now() + Math.max(ttl, driver.queueEntryLifetime);
    member.sendEnd(this.request, end, () => driver.leave({ key, owner })).catch(() => undefined);
  }
}

function isReply(vote: Vote<AcquireReply>): vote is AcquireReply {
  return vote !== undefined && !(vote instanceof LockError);
}
