import { StoreError, type LockError } from '../../core/model/errors.js';
import type { LeaseDriver } from '../../core/store/lease-driver.js';
import type { RequestDeadlines, TimedRequest } from '../../core/store/request-deadlines.js';
import { LinkedEntry } from '../../core/util/linked-list.js';
import type { Member } from './quorum.member.js';
import type { Vote } from './quorum.votes.js';

/** The members with their drivers of one kind of lock. */
export interface Electorate {
  readonly voters: readonly Voter[];
  /** Ends each poll after a memberTimeout. */
  readonly deadlines: RequestDeadlines<OpenPoll>;
}

export interface Voter {
  readonly member: Member;
  readonly driver: LeaseDriver;
}

/** A poll whose outcome is not certain. */
export abstract class OpenPoll extends LinkedEntry<OpenPoll> implements TimedRequest<OpenPoll> {
  endsAt = 0;
  /** Members that have not answered by now are silent. */
  abstract late(): void;
}

/** The votes of all members on one question, until its outcome is certain. Later votes are kept, too. */
export class Poll<Reply, Outcome> extends OpenPoll {
  readonly decided: Promise<Outcome>;
  private isDecided = false;
  private resolve!: (outcome: Outcome) => void;

  /** @param outcomeOf `undefined`: it is not certain yet. @param votes those that are known already. */
  constructor(
    private readonly key: string,
    private readonly electorate: Electorate,
    private readonly outcomeOf: (votes: readonly Vote<Reply>[]) => Outcome | undefined,
    readonly votes: Vote<Reply>[] = electorate.voters.map(() => undefined),
  ) {
    super();
    this.decided = new Promise((resolve) => (this.resolve = resolve));
    electorate.deadlines.begin(this);
  }

  /** @param replies of each member; they reject with a LockError. */
  take(replies: readonly Promise<Reply>[]): this {
    for (const [index, reply] of replies.entries()) {
      reply.then(
        (answer) => this.vote(index, answer),
        (error: LockError) => this.vote(index, error),
      );
    }
    return this;
  }

  vote(index: number, vote: Vote<Reply>): void {
    this.votes[index] = vote;
    if (!this.isDecided) this.count();
  }

  late(): void {
    const { voters, deadlines } = this.electorate;
    deadlines.end(this);
    for (const [index, { member }] of voters.entries()) {
      if (this.votes[index] !== undefined) continue;
      member.isUp = false;
      const silence = `${member.title} did not answer within ${deadlines.requestTimeout} ms.`;
      this.votes[index] = new StoreError(silence, { key: this.key, transient: true });
    }
    this.count();
  }

  private count(): void {
    const outcome = this.outcomeOf(this.votes);
    if (outcome === undefined) return;
    this.isDecided = true;
    this.electorate.deadlines.end(this);
    this.resolve(outcome);
  }
}
