import { asStoreError, LockError, StoreError } from '../../core/model/errors.js';
import type { AcquireRequest, RenewRequest, Share, Tenancy } from '../../core/store/lease-driver.js';
import { now } from '../../core/util/clock.js';
import { outageOf } from './quorum.ballot-rounds.js';
import { Poll, type Electorate } from './quorum.poll.js';
import { wordOutcome, type Vote } from './quorum.votes.js';

/** Milliseconds between two searches for leases that ended without a release: with a later grant. */
const SWEEP = 10_000;

/** Leases that are renewed between two iterations of the event loop. */
const PART = 256;

/**
 * For each member true if its last answer to an owner was a grant that counts, false if it may have a request of it, `undefined` if it was never asked.
 * Only the first ones count in a renewal: another one may have a queue entry of the owner, which has to leave the queue. It loses with it what it
 * has been granted meanwhile.
 */
export type AskedMembers = (boolean | undefined)[];

/** A lease that a majority has granted. */
export interface QuorumLease {
  /** The last token that was reserved; 0: there is none. */
  readonly lastToken: number;
  readonly share: Share | undefined;
  readonly asked: AskedMembers;
  /** On the monotonic clock: no member has the lease any more. */
  endsAt: number;
}

type Word = 'renewed' | 'lost';
/** The answer of a member for each lease. */
type Words = readonly Vote<Word>[];

interface Renewal {
  readonly outcome: Word | 'silent';
  readonly votes: readonly Vote<Word>[];
}

/** The leases of this process. It renews them at all members, and restores them at members that have lost them. */
export class Leases {
  /** The leases by their owner: the id of one holding. */
  private readonly leases = new Map<string, QuorumLease>();
  private sweptAt = 0;

  constructor(private readonly electorate: Electorate) {}

  get({ owner }: Tenancy): QuorumLease | undefined {
    return this.leases.get(owner);
  }

  granted({ key, owner, ttl, share }: AcquireRequest, lastToken: number, asked: AskedMembers): void {
    const before = this.get({ key, owner }) ?? { lastToken: 0, endsAt: 0 };
    const endsAt = Math.max(before.endsAt, now() + ttl);
    this.leases.set(owner, { lastToken: Math.max(before.lastToken, lastToken), share, asked, endsAt });
    this.sweep();
  }

  delete({ owner }: Tenancy): void {
    this.leases.delete(owner);
  }

  /** Thousands of leases are renewed in parts, between which other work goes on. */
  renew(batch: readonly RenewRequest[]): Promise<Word>[] {
    let turn: Promise<unknown> | undefined;
    return partsOf(batch).flatMap((part) => {
      const renewals = turn ? turn.then(() => this.renewPart(part)) : this.renewPart(part);
      turn = Promise.resolve(turn).then(() => new Promise(setImmediate));
      return part.map(async ({ key }, at) => {
        const { outcome, votes } = (await renewals)[at]!;
        if (outcome === 'silent') throw outageOf(key, votes);
        return outcome;
      });
    });
  }

  /** Each member is asked once, and answers with a word for each lease. After a memberTimeout, the words that it has given count: one key can hang. */
  private async renewPart(part: readonly RenewRequest[]): Promise<readonly Renewal[]> {
    const { electorate } = this;
    const asked = part.map((request) => this.get(request)?.asked);
    const said = electorate.voters.map((): Vote<Word>[] => []);
    const isVoter = (index: number, at: number): boolean => asked[at] === undefined || asked[at][index] === true;
    const wordOf = (vote: Vote<Words>, index: number, at: number): Vote<Word> => {
      const word = vote && (said[index]![at] ?? (vote as LockError));
      if (word !== 'renewed' || isVoter(index, at)) return word;
      return new StoreError(`Member ${index + 1} has not said that it grants the key.`, { key: part[at]!.key, transient: true });
    };
    const poll = new Poll<Words, readonly Renewal[]>(part[0]!.key, electorate, (all) => {
      const renewals: Renewal[] = [];
      for (const at of part.keys()) {
        const votes = all.map((vote, index) => wordOf(vote, index, at));
        const outcome = wordOutcome(votes, 'renewed', 'lost');
        if (outcome === undefined) return undefined;
        renewals.push({ outcome, votes });
      }
      return renewals;
    });
    const answers = electorate.voters.map(({ member, driver }, index) =>
      member.send(part[0]!.key, () => wordsOf(driver.renew(part), part, said[index]!)),
    );
    const renewals = await poll.take(answers).decided;
    for (const [at, request] of part.entries()) {
      const lease = this.get(request);
      if (renewals[at]!.outcome === 'lost') this.delete(request);
      else if (renewals[at]!.outcome === 'renewed' && lease) lease.endsAt = Math.max(lease.endsAt, now() + request.ttl);
    }
    const restoreAt = (index: number, words: Words): void => {
      for (const [at, request] of part.entries()) {
        const isLost = words[at] === 'lost' || (words[at] === 'renewed' && !isVoter(index, at));
        if (isLost && renewals[at]!.outcome === 'renewed') this.restore(index, request);
      }
    };
    for (const [index, answer] of answers.entries()) {
      answer.then(
        (words) => restoreAt(index, words),
        () => undefined,
      );
    }
    return renewals;
  }

  /**
   * Takes the key again at a member that has lost it, if it is free there. That is safe only because a majority has just renewed: another owner would
   * need one of these members.
   */
  private restore(index: number, { key, owner, ttl }: RenewRequest): void {
    const lease = this.get({ key, owner });
    const { member, driver } = this.electorate.voters[index]!;
    // It may be about to leave the queue there.
    if (!lease || member.isAsked(owner)) return;
    const { lastToken: floor, share, asked } = lease;
    member
      .sendInOrder({ key, owner }, () => driver.acquire({ key, owner, ttl, tokens: 1, floor, queue: false, share }))
      .then(
        ({ granted }) => void (asked[index] = granted),
        () => undefined,
      );
  }

  private sweep(): void {
    const time = now();
    if (time < this.sweptAt + SWEEP) return;
    this.sweptAt = time;
    for (const [owner, { endsAt }] of this.leases) if (endsAt < time) this.leases.delete(owner);
  }
}

function partsOf(batch: readonly RenewRequest[]): RenewRequest[][] {
  return Array.from({ length: Math.ceil(batch.length / PART) }, (_, index) => batch.slice(index * PART, (index + 1) * PART));
}

/** @param words gets each word when it is there. @throws the first error, if there is nothing else. */
async function wordsOf(replies: readonly Promise<Word>[], part: readonly RenewRequest[], words: Vote<Word>[]): Promise<Words> {
  const heard = replies.map((reply, at) =>
    reply.then(
      (word) => (words[at] = word),
      (cause: unknown) => (words[at] = asStoreError(cause, part[at]!.key)),
    ),
  );
  await Promise.all(heard);
  const [first] = words;
  if (first instanceof LockError && words.every((word) => word instanceof LockError)) throw first;
  return words;
}
