import { StoreError } from '../../core/model/errors.js';
import type { RenewRequest, Share, Tenancy } from '../../core/store/lease-driver.js';
import { after, now } from '../../core/util/clock.js';
import { outageOf } from './quorum.ballot-rounds.js';
import { Poll, type Electorate } from './quorum.poll.js';
import { wordOutcome } from './quorum.votes.js';

/** Milliseconds between two searches for leases that ended without a release. */
const SWEEP = 10_000;

/**
 * Members, by index, that may have a request of an owner; true: the last answer was a grant that counts. Only these count in a renewal: another one
 * may have a queue entry of the owner, which has to leave the queue. It loses with it what it has been granted meanwhile.
 */
export type AskedMembers = Map<number, boolean>;

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

/** The leases of this process. It renews them at all members, and restores them at members that have lost them. */
export class Leases {
  /** The leases by their owner: the id of one holding. */
  private readonly leases = new Map<string, QuorumLease>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly electorate: Electorate) {}

  get({ owner }: Tenancy): QuorumLease | undefined {
    return this.leases.get(owner);
  }

  granted(tenancy: Tenancy, ttl: number, { lastToken, ...rest }: Omit<QuorumLease, 'endsAt'>): void {
    const before = this.get(tenancy) ?? { lastToken: 0, endsAt: 0 };
    const endsAt = Math.max(before.endsAt, now() + ttl);
    this.leases.set(tenancy.owner, { ...rest, lastToken: Math.max(before.lastToken, lastToken), endsAt });
    this.timer ??= after(SWEEP, this.sweep).unref();
  }

  delete({ owner }: Tenancy): void {
    this.leases.delete(owner);
  }

  renew(batch: readonly RenewRequest[]): Promise<Word>[] {
    const answers = this.electorate.voters.map(({ member, driver }) => {
      let replies: readonly Promise<Word>[] | undefined;
      const replyTo = async (index: number): Promise<Word> => (replies ??= driver.renew(batch))[index] ?? 'lost';
      return batch.map(({ key }, index) => member.send(key, () => replyTo(index)));
    });
    return batch.map((request, index) =>
      this.renewal(
        request,
        answers.map((replies) => replies[index] as Promise<Word>),
      ),
    );
  }

  private async renewal(request: RenewRequest, answers: readonly Promise<Word>[]): Promise<Word> {
    const { key, ttl } = request;
    const asked = this.get(request)?.asked;
    const isVoter = (index: number): boolean => asked?.get(index) ?? asked === undefined;
    const poll = new Poll<Word, Word | 'silent'>(key, this.electorate, (votes) => wordOutcome(votes, 'renewed', 'lost'));
    const votes = answers.map(async (answer, index) => {
      const word = await answer;
      if (word === 'lost' || isVoter(index)) return word;
      throw new StoreError(`Member ${index + 1} has not said that it grants the key.`, { key, transient: true });
    });
    const { decided } = poll.take(votes);
    for (const [index, answer] of answers.entries()) {
      void Promise.all([answer, decided]).then(
        ([word, outcome]) => {
          if (outcome === 'renewed' && (word === 'lost' || !isVoter(index))) this.restore(index, request);
        },
        () => undefined,
      );
    }
    const outcome = await decided;
    if (outcome === 'silent') throw outageOf(key, poll.votes);
    const lease = this.get(request);
    if (outcome === 'lost') this.delete(request);
    else if (lease) lease.endsAt = Math.max(lease.endsAt, now() + ttl);
    return outcome;
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
        ({ granted }) => void asked.set(index, granted),
        () => undefined,
      );
  }

  private readonly sweep = (): void => {
    const time = now();
    for (const [owner, { endsAt }] of this.leases) if (endsAt < time) this.leases.delete(owner);
    this.timer = this.leases.size > 0 ? after(SWEEP, this.sweep).unref() : undefined;
  };
}
