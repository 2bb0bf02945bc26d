import { LockError, LockLostError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, AcquireRequest } from '../../core/store/lease-driver.js';
import { now } from '../../core/util/clock.js';
import type { AskedMembers } from './quorum.leases.js';
import { Poll, type Electorate } from './quorum.poll.js';
import { acquireOutcome, isBelow, type AcquireOutcome, type Vote } from './quorum.votes.js';

export type BallotResult = Exclude<AcquireOutcome, { kind: 'raise' }>;

/**
 * One acquire at all members, in three steps:
 *
 * 1. Everybody is asked.
 * 2. If their tokens differ, one of them is to count, and members that have granted a smaller one are asked to record it.
 * 3. The result is known. What each member has, or may have, is put in order: see {@link settle}. A vote that comes later is handled when it comes.
 */
export class Ballot {
  readonly votes: Vote<AcquireReply>[];
  /** The last token that each member has granted, also where its vote does not count. */
  private readonly recorded: (number | null | undefined)[] = [];
  /** The smallest token that each member was asked for last. None is asked for the same once more: a ballot has an end, whatever they answer. */
  private readonly floors: number[] = [];
  private poll!: Poll<AcquireReply, AcquireOutcome>;
  /** From step 2 on: the token that is to count. */
  private token: number | undefined;
  /** From step 3 on. */
  private result: BallotResult | undefined;

  /**
   * @param floor the smallest token that everybody is asked for.
   * @param asked by this owner, also before.
   * @param isHeld whether the owner has not released the key since it was granted.
   */
  constructor(
    private readonly electorate: Electorate,
    private readonly request: AcquireRequest,
    private readonly floor: number,
    private readonly asked: AskedMembers,
    private readonly isHeld: () => boolean,
  ) {
    this.votes = electorate.voters.map(() => undefined);
  }

  /** Ends as soon as the result is certain. */
  async hold(): Promise<BallotResult> {
    this.poll = this.newPoll();
    for (const index of this.votes.keys()) this.ask(index, this.floor);
    let outcome = await this.poll.decided;
    if (outcome.kind === 'raise') {
      const token = (this.token = outcome.token);
      this.poll = this.newPoll();
      for (const index of this.votes.keys()) if (this.mayRecord(index, token)) this.ask(index, token);
      outcome = await this.poll.decided;
    }
    const result = (this.result = outcome as BallotResult);
    if (result.kind === 'granted') this.token = result.token ?? 0;
    // The owner cannot have released the key yet.
    for (const index of this.votes.keys()) this.settle(index, true);
    return result;
  }

  private newPoll(): Poll<AcquireReply, AcquireOutcome> {
    return new Poll(this.request.key, this.electorate, (votes) => acquireOutcome(votes, this.token), this.votes);
  }

  private ask(index: number, floor: number): void {
    this.votes[index] = undefined;
    this.floors[index] = floor;
    // The doubt is part of the request: the next one of this owner must not be answered before this vote is settled.
    this.electorate.voters[index]!.member.sendInOrder(this.request, () => this.voteOf(index, floor)).then(
      (vote) => this.answered(index, vote),
      (error: LockError) => {
        if (!(error instanceof StoreError && error.isUnsent)) this.asked[index] ??= false;
        this.answered(index, error);
      },
    );
  }

  /** Repeats the request, as long as the owner has the key, at a member that has not answered: its vote may be one of a majority later. */
  private askAgain(index: number, token: number): void {
    const { key, ttl } = this.request;
    const vote = (): Promise<AcquireReply | LockError> => {
      if (!this.isHeld()) throw new LockLostError(`"${key}" was released.`, { key });
      return this.voteOf(index, Math.max(this.floor, token));
    };
    // Later, renewals take care of it.
    this.electorate.voters[index]!.member.sendAgain(this.request, now() + ttl, vote).then(
      (vote) => this.answered(index, vote),
      () => undefined,
    );
  }

  private async voteOf(index: number, floor: number): Promise<AcquireReply | LockError> {
    const { request } = this;
    const { member, driver } = this.electorate.voters[index]!;
    const sentAt = now();
    const { key, owner, ttl, tokens, holding, share } = request;
    // Once the result is known the owner does not wait here any more.
    const queue = request.queue && !this.result;
    const reply = await driver.acquire({ key, owner, ttl, tokens, floor, queue, holding, share });
    if (reply.granted) this.recorded[index] = reply.token;
    const doubt = reply.granted && member.mayForget && (await member.doubt(key, sentAt));
    this.asked[index] = reply.granted && !doubt;
    return doubt || reply;
  }

  private answered(index: number, vote: AcquireReply | LockError): void {
    this.votes[index] = vote;
    const { token = 0, result } = this;
    // In step 2 a smaller token does not count, until the member has recorded the one that does.
    if (!result && this.mayRecord(index, token)) return this.ask(index, token);
    this.poll.vote(index, vote);
    if (result) this.settle(index, this.isHeld());
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
  private settle(index: number, isHeld: boolean): void {
    const { result, request, token = 0 } = this;
    const vote = this.votes[index];
    const recorded = this.recorded[index];
    if (this.electorate.voters[index]!.member.isAsked(request.owner)) return;
    if (result?.kind !== 'granted') {
      // Two owners that each have a queue entry where the other one has a vote would only exchange their votes.
      const isQueued = request.queue && result?.kind === 'taken' && result.isSplit && isReply(vote);
      const mayHold = !request.queue && !isReply(vote) && this.asked[index] !== undefined;
      if (recorded !== undefined || isQueued || mayHold) this.leave(index);
    } else if (isReply(vote)) {
      // Its queue entry would be offered the key, for which it does not wait any more.
      if (!vote.granted && request.queue) this.leave(index);
      // It may become one of the majority.
      else if (isHeld && this.mayRecord(index, token)) this.ask(index, token);
    } else if (isHeld) {
      const isUnknown = recorded === undefined ? this.asked[index] === false : (recorded ?? token) < token;
      if (isUnknown) this.askAgain(index, token);
    }
  }

  /** Whether the member has granted a smaller token, and was not asked for this one. */
  private mayRecord(index: number, token: number): boolean {
    return isBelow(this.votes[index], token) && this.floors[index]! < token;
  }

  private leave(index: number): void {
    const { key, owner, ttl } = this.request;
    const { member, driver } = this.electorate.voters[index]!;
    this.asked[index] = false;
    const end = now() + Math.max(ttl, driver.queueEntryLifetime);
    member.sendEnd(this.request, end, () => driver.leave({ key, owner })).catch(() => undefined);
  }
}

function isReply(vote: Vote<AcquireReply>): vote is AcquireReply {
  return vote !== undefined && !(vote instanceof LockError);
}
