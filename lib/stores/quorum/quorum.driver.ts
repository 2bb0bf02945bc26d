import { configError } from '../../core/model/errors.js';
import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
  WakeUps,
} from '../../core/store/lease-driver.js';
import { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { isSettledWithin, now } from '../../core/util/clock.js';
import { BallotRounds, outageOf } from './quorum.ballot-rounds.js';
import { Leases, type AskedMembers, type QuorumLease } from './quorum.leases.js';
import type { Member } from './quorum.member.js';
import { Poll, type Electorate, type OpenPoll } from './quorum.poll.js';
import { QUEUE_LOCK_TTL, QueueLock } from './quorum.queue-lock.js';
import { checkOutcome, majorityOf, wordOutcome } from './quorum.votes.js';
import { QuorumWakeUps } from './quorum.wakeups.js';

export interface QuorumSetting {
  readonly members: readonly Member[];
  /** Milliseconds until a member that does not answer counts as silent. */
  readonly memberTimeout: number;
  readonly requestTimeout: number;
  /** Milliseconds; `Infinity`: no server forgets anything. */
  readonly longestLease: number;
}

/** One kind of lock. An owner holds a key when a majority of the members has granted it. */
export class QuorumDriver implements LeaseDriver {
  readonly isShared: boolean;
  readonly queueEntryLifetime: number;
  readonly wakeUps?: WakeUps;
  readonly timeOf?: (token: number) => Date;
  readonly ballots: BallotRounds;
  private readonly electorate: Electorate;
  private readonly queueLock: QueueLock;
  private readonly leases: Leases;

  constructor(
    private readonly setting: QuorumSetting,
    side: 'mutex' | 'read' | 'write',
  ) {
    const { members, memberTimeout, requestTimeout } = setting;
    const drivers = members.map(({ store }) => (side === 'mutex' ? store.mutex : store.readWriteLock![side]));
    const voters = members.map((member, index) => ({ member, driver: drivers[index] as LeaseDriver }));
    const electorate = (this.electorate = { voters, deadlines: new RequestDeadlines<OpenPoll>(memberTimeout, (poll) => poll.late()) });
    this.isShared = side !== 'mutex';
    this.queueEntryLifetime = Math.min(QUEUE_LOCK_TTL, ...drivers.map(({ queueEntryLifetime }) => queueEntryLifetime));
    this.ballots = new BallotRounds(electorate, requestTimeout, side === 'read');
    this.queueLock = new QueueLock(electorate);
    this.leases = new Leases(electorate);
    const inboxes = drivers.flatMap(({ wakeUps }) => wakeUps ?? []);
    if (inboxes.length >= majorityOf(members.length)) this.wakeUps = new QuorumWakeUps(members, inboxes);
    if (drivers.every((driver) => driver.timeOf?.(0) !== undefined)) this.timeOf = (token) => new Date(token / 1000);
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, ttl, tokens, queue, share, yields } = request;
    this.checkLength(key, ttl);
    const yielded = yields === undefined ? undefined : await this.release({ key, owner: yields, keepFor: 0 }).catch(() => undefined);
    // An owner that holds the key reads beside itself, and an owner that asks once more does not wait for other waiters.
    const waits = queue && share?.beside === undefined && !this.leases.get(request);
    const refusal = waits ? await this.queueLock.acquire(request) : undefined;
    const asked: AskedMembers = this.leases.get(request)?.asked ?? [];
    const reply = refusal ?? (await this.ballots.elect(request, asked, () => this.leases.get(request) !== undefined));
    if (reply.granted) {
      const lastToken = reply.token === null ? 0 : reply.token + tokens - 1;
      this.leases.granted(request, lastToken, asked);
      void this.queueLock.leave(request);
    }
    return yielded ? { ...reply, yielded } : reply;
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    const fits = batch.filter(({ ttl }) => ttl <= this.setting.longestLease);
    const replies = this.leases.renew(fits);
    return batch.map(async (request) => {
      this.checkLength(request.key, request.ttl);
      return replies[fits.indexOf(request)] as Promise<'renewed' | 'lost'>;
    });
  }

  release(request: ReleaseRequest): Promise<'released' | 'lost'> {
    const { key, owner, keepFor } = request;
    const keptUntil = now() + keepFor;
    const lease = this.leases.get(request);
    this.leases.delete(request);
    const remaining = (): number => keepFor && Math.ceil(Math.max(0, keptUntil - now()));
    return this.end(request, ['released', 'lost'], (driver) => driver.release({ key, owner, keepFor: remaining() }), lease).outcome;
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    const tenancy = { key, owner };
    this.leases.delete(tenancy);
    const leftQueue = this.queueLock.leave(tenancy);
    const { replies, outcome } = this.end(tenancy, ['left', 'stayed'], (driver) => driver.leave(tenancy).then(() => 'left'));
    await outcome;
    // Nobody waits for this, so that it need not be over with a majority.
    await isSettledWithin(this.setting.memberTimeout, Promise.allSettled([leftQueue, ...replies]));
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const { voters } = this.electorate;
    const tenancy = { key, owner };
    const isWaiting = this.queueLock.isWaiting(tenancy).catch(() => false);
    const poll = new Poll<CheckReply, true>(key, this.electorate, (votes) => !votes.includes(undefined) || undefined);
    await poll.take(voters.map(({ member, driver }) => member.send(key, () => driver.check(tenancy)))).decided;
    const replies = poll.votes.flatMap((vote) => (vote && 'state' in vote ? vote : []));
    if (replies.length >= majorityOf(voters.length)) return checkOutcome(replies, voters.length, await isWaiting);
    const states = poll.votes.map((vote) => (vote && 'state' in vote ? vote.state : vote));
    throw outageOf(key, states);
  }

  /**
   * Sends the end of a tenancy to all members, in the order of the owner's requests.
   *
   * @param words the answer that needs a majority, and the other one.
   * @param lease that ends, if there is one.
   */
  private end<Yes extends string, No extends string>(
    tenancy: Tenancy,
    [yes, no]: readonly [Yes, No],
    send: (driver: LeaseDriver) => Promise<Yes | No>,
    lease?: QuorumLease,
  ): { readonly replies: readonly Promise<unknown>[]; readonly outcome: Promise<Yes | No> } {
    const poll = new Poll<Yes | No, Yes | No | 'silent'>(tenancy.key, this.electorate, (votes) => wordOutcome(votes, yes, no));
    const replies = this.electorate.voters.map(({ member, driver }, index) => {
      const end = Math.max(lease?.endsAt ?? 0, now() + driver.queueEntryLifetime);
      return member.sendEnd(
        tenancy,
        end,
        () => send(driver),
        () => !lease || lease.asked[index] !== undefined,
      );
    });
    const outcome = poll.take(replies).decided.then((word) => {
      if (word === 'silent') throw outageOf(tenancy.key, poll.votes);
      return word;
    });
    return { replies, outcome };
  }

  /** A server that was started again must not vote before the last lease that it may have forgotten has ended. */
  private checkLength(key: string, ttl: number): void {
    const { longestLease } = this.setting;
    if (ttl <= longestLease) return;
    const lengths = `A keyTimeout or minHold of ${ttl} ms is longer than the quarantine of ${longestLease} ms`;
    throw configError('OPTION', `${lengths}: "${key}" could be granted twice. Give quorumStore a longer quarantine.`, { key });
  }
}
