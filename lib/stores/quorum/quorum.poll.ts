import { StoreError, type LockError } from '../../core/model/errors.js';
import type { RequestDeadlines, TimedRequest } from '../../core/store/request-deadlines.js';
import { LinkedEntry } from '../../core/util/linked-list.js';
import type { Member } from './quorum.member.js';
import type { Vote } from './quorum.votes.js';

/** A poll whose outcome is not certain. Each lasts for a memberTimeout. */
export abstract class OpenPoll extends LinkedEntry<OpenPoll> implements TimedRequest<OpenPoll> {
  endsAt = 0;
  /** Who has not answered by now is silent. */
  abstract late(): void;
}

/** The votes of all members on one request, until its outcome is certain. */
export class Poll<Reply, Outcome> extends OpenPoll {
  readonly votes: Vote<Reply>[];
  readonly decided: Promise<Outcome>;
  isDecided = false;
  /** Whether its time has run out, also that of a {@link reopen}. The outcome has to be certain then. */
  isOver = false;
  private isReopened = false;
  private resolve!: (outcome: Outcome) => void;

  /** @param outcomeOf `undefined`: it is not certain yet. */
  constructor(
    private readonly key: string,
    private readonly members: readonly Member[],
    private readonly deadlines: RequestDeadlines<OpenPoll>,
    private readonly outcomeOf: (votes: readonly Vote<Reply>[]) => Outcome | undefined,
  ) {
    super();
    this.votes = members.map(() => undefined);
    this.decided = new Promise((resolve) => (this.resolve = resolve));
    deadlines.begin(this);
  }

  /** @param reply rejects with a LockError. */
  add(index: number, reply: Promise<Reply>): void {
    reply.then(
      (answer) => this.vote(index, answer),
      (error: LockError) => this.vote(index, error),
    );
  }

  vote(index: number, vote: Vote<Reply>): void {
    this.votes[index] = vote;
    if (!this.isDecided) this.count();
  }

  /** These members are asked once more. The first time, they have a memberTimeout for it. */
  reopen(indexes: readonly number[]): void {
    for (const index of indexes) this.votes[index] = undefined;
    if (this.isReopened) return;
    this.isReopened = true;
    this.deadlines.end(this);
    this.deadlines.begin(this);
  }

  late(): void {
    this.deadlines.end(this);
    this.isOver = this.isReopened;
    for (const [index, member] of this.members.entries()) {
      if (this.votes[index] !== undefined) continue;
      member.isUp = false;
      const silence = `${member.title} did not answer within ${this.deadlines.requestTimeout} ms.`;
      this.votes[index] = new StoreError(silence, { key: this.key, transient: true });
    }
    this.count();
  }

  private count(): void {
    const outcome = this.outcomeOf(this.votes);
    if (outcome === undefined || this.isDecided) return;
    this.isDecided = true;
    this.deadlines.end(this);
    this.resolve(outcome);
  }
}
