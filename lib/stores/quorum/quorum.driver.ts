import { LockConfigError } from '../../core/model/errors.js';
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
import { Election, outageOf } from './quorum.election.js';
import { HeldLeases, type Held, type Known } from './quorum.held.js';
import { sent, type Member } from './quorum.member.js';
import { Poll, type OpenPoll } from './quorum.poll.js';
import { Renewals } from './quorum.renewals.js';
import { TURN, Turns } from './quorum.turns.js';
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
  readonly election: Election;
  private readonly deadlines: RequestDeadlines<OpenPoll>;
  private readonly turns: Turns;
  private readonly renewals: Renewals;
  private readonly held = new HeldLeases();

  constructor(
    private readonly setting: QuorumSetting,
    private readonly side: 'mutex' | 'read' | 'write',
  ) {
    const { members, memberTimeout } = setting;
    const drivers = members.map(this.driverOf);
    const deadlines = (this.deadlines = new RequestDeadlines(memberTimeout, (poll) => poll.late()));
    this.isShared = side !== 'mutex';
    this.queueEntryLifetime = Math.min(TURN, ...drivers.map(({ queueEntryLifetime }) => queueEntryLifetime));
    this.election = new Election({ members, driverOf: this.driverOf, deadlines, isReader: side === 'read' }, setting.requestTimeout);
    this.turns = new Turns(members, this.driverOf, memberTimeout);
    this.renewals = new Renewals(members, this.driverOf, deadlines, this.held);
    const inboxes = drivers.flatMap(({ wakeUps }) => wakeUps ?? []);
    if (inboxes.length >= majorityOf(members.length)) this.wakeUps = new QuorumWakeUps(members, inboxes);
    if (drivers.every((driver) => driver.timeOf?.(0) !== undefined)) this.timeOf = (token) => new Date(token / 1000);
  }

  async acquire({ yields, ...request }: AcquireRequest): Promise<AcquireReply> {
    const { key, ttl, tokens, queue, share } = request;
    this.checkLength(key, ttl);
    const yielded = yields === undefined ? undefined : await this.release({ key, owner: yields, keepFor: 0 }).catch(() => undefined);
    // Who has the key reads beside itself, and who asks once more does not wait for the turn of another one.
    const waits = queue && share?.beside === undefined && !this.held.has(request);
    const refusal = waits ? await this.turns.ask(request) : undefined;
    const known: Known = this.held.get(request)?.known ?? new Map<number, boolean>();
    const reply = refusal ?? (await this.election.elect(request, known, () => this.held.has(request)));
    if (reply.granted) {
      this.held.granted(request, ttl, reply.token === null ? 0 : reply.token + tokens - 1, known, share);
      void this.turns.end(request);
    }
    return yielded ? { ...reply, yielded } : reply;
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    const fits = batch.filter(({ ttl }) => ttl <= this.setting.longestLease);
    const replies = this.renewals.renew(fits);
    return batch.map(async (request) => {
      this.checkLength(request.key, request.ttl);
      return replies[fits.indexOf(request)] as Promise<'renewed' | 'lost'>;
    });
  }

  release({ key, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    const tenancy = { key, owner };
    const keptUntil = now() + keepFor;
    const lease = this.held.get(tenancy);
    this.held.delete(tenancy);
    const send = (driver: LeaseDriver): Promise<'released' | 'lost'> =>
      driver.release({ ...tenancy, keepFor: keepFor && Math.ceil(Math.max(0, keptUntil - now())) });
    return this.giveBack(tenancy, 'released', 'lost', send, lease);
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    const tenancy = { key, owner };
    this.held.delete(tenancy);
    const left: Promise<unknown>[] = [this.turns.end(tenancy) ?? Promise.resolve()];
    await this.giveBack(tenancy, 'left', 'stayed', (driver) => driver.leave(tenancy).then(() => 'left'), undefined, left);
    // Nobody waits for this, so that it need not be over with a majority.
    await isSettledWithin(this.setting.memberTimeout, Promise.allSettled(left));
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const { members } = this.setting;
    const tenancy = { key, owner };
    const isWaiting = this.turns.isWaiting(tenancy).catch(() => false);
    const poll = new Poll<CheckReply, true>(key, members, this.deadlines, (votes) => !votes.includes(undefined) || undefined);
    for (const [index, member] of members.entries()) {
      const reply = member.heard(
        sent(() => this.driverOf(member).check(tenancy)),
        key,
      );
      poll.add(index, reply);
    }
    await poll.decided;
    const replies = poll.votes.flatMap((vote) => (vote && 'state' in vote ? vote : []));
    if (replies.length >= majorityOf(members.length)) return checkOutcome(replies, members.length, await isWaiting);
    throw outageOf(
      key,
      poll.votes.map((vote) => (vote && 'state' in vote ? vote.state : vote)),
    );
  }

  private readonly driverOf = ({ store }: Member): LeaseDriver => (this.side === 'mutex' ? store.mutex : store.readWriteLock![this.side]);

  /**
   * Sends it to all members in the order of the owner's requests.
   *
   * @param lease that is given back, if there is one.
   * @param replies gets what each of them answers.
   */
  private async giveBack<Yes extends string, No extends string>(
    tenancy: Tenancy,
    yes: Yes,
    no: No,
    send: (driver: LeaseDriver) => Promise<Yes | No>,
    lease?: Held,
    replies: Promise<unknown>[] = [],
  ): Promise<Yes | No> {
    const { members } = this.setting;
    const poll = new Poll<Yes | No, Yes | No | 'silent'>(tenancy.key, members, this.deadlines, (votes) => wordOutcome(votes, yes, no));
    for (const [index, member] of members.entries()) {
      const driver = this.driverOf(member);
      const end = Math.max(lease?.endsAt ?? 0, now() + driver.queueEntryLifetime);
      const mayKnow = (): boolean => lease?.known.has(index) !== false;
      const reply = member.giveBack(tenancy, end, () => send(driver), mayKnow);
      replies.push(reply);
      poll.add(index, reply);
    }
    const outcome = await poll.decided;
    if (outcome === 'silent') throw outageOf(tenancy.key, poll.votes);
    return outcome;
  }

  /** A server that was started again must not vote before the last lease that it may have forgotten has ended. */
  private checkLength(key: string, ttl: number): void {
    const { longestLease } = this.setting;
    if (ttl <= longestLease) return;
    const lengths = `A keyTimeout or minHold of ${ttl} ms is longer than the quarantine of ${longestLease} ms`;
    throw new LockConfigError(`${lengths}: "${key}" could be granted twice. Give quorumStore a longer quarantine.`, { key });
  }
}
