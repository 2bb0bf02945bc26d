import type { AcquireReply, AcquireRequest, Tenancy } from '../../core/store/lease-driver.js';
import { isSettledWithin, now } from '../../core/util/clock.js';
import type { Member } from './quorum.member.js';
import type { Electorate, Voter } from './quorum.poll.js';
import type { Refusal } from './quorum.votes.js';

/** Milliseconds after which the queue lock of a process that died is free. Waiters ask at least twice as often. */
export const QUEUE_LOCK_TTL = 2000;

/** Part of the key and of the owner of a queue lock. No key of a user has a control character. */
const KEY_MARK = '\u001fturn';
const OWNER_MARK = ';turn';

/** A waiter of this process for the queue lock of a key. */
interface Wait {
  readonly queueMember: Member;
  readonly lock: Tenancy;
  hasLock: boolean;
  askedAt: number;
}

/**
 * Decides which waiter for a key may queue at all members: one of each rank, since ranks have one order everywhere. With more, the members would offer
 * the key to different waiters. The others queue for this lock, which is a mutex at one member, the queue member: the first one in the given order that
 * answers. Only the order of the waiters depends on it.
 */
export class QueueLock {
  /** The waits by their owner. */
  private readonly waits = new Map<string, Wait>();
  private readonly voters: readonly Voter[];

  /** @param electorate of the lock that is waited for. */
  constructor(
    { voters, deadlines }: Electorate,
    private readonly memberTimeout = deadlines.requestTimeout,
  ) {
    // Where waiters are not woken, each hand-over of the lock would be late.
    this.voters = [...voters].sort((a, b) => Number(isWoken(b)) - Number(isWoken(a)));
  }

  /** Asks for the lock. `undefined`: the owner has it, or no member answers; else the refusal for the waiter. */
  async acquire(request: AcquireRequest): Promise<Refusal | undefined> {
    const wait = this.waits.get(request.owner);
    if (wait?.hasLock && wait.queueMember.isUp) {
      if (now() > wait.askedAt + QUEUE_LOCK_TTL / 3) void ask(wait).catch(() => undefined);
      return undefined;
    }
    const tried = new Set<Voter>();
    for (let voter = this.queueVoter; voter && !tried.has(voter); voter = this.queueVoter) {
      tried.add(voter);
      const outcome = await this.askAt(voter, request);
      if (outcome === 'granted') return undefined;
      if (outcome !== undefined) return outcome;
    }
    return undefined;
  }

  /** The owner waits no more. */
  leave({ owner }: Tenancy): Promise<void> | undefined {
    const wait = this.waits.get(owner);
    if (!wait) return undefined;
    this.waits.delete(owner);
    return leave(wait);
  }

  /** Whether the owner waits, as far as the queue member knows. */
  async isWaiting(tenancy: Tenancy): Promise<boolean> {
    const { queueVoter } = this;
    if (!queueVoter) return false;
    const { member, driver } = queueVoter;
    const locks = (driver.isShared ? ([0, 1] as const) : ([0] as const)).map((rank) => queueLockOf(tenancy, rank));
    const checks = await Promise.all(locks.map((lock) => member.send(lock.key, () => member.store.mutex.check(lock))));
    return checks.some(({ state }) => state === 'held' || state === 'queued');
  }

  private get queueVoter(): Voter | undefined {
    return this.voters.find(({ member }) => member.isUp);
  }

  /** `undefined`: the member has not answered. */
  private async askAt({ member, driver }: Voter, request: AcquireRequest): Promise<Refusal | 'granted' | undefined> {
    const { key, owner, share } = request;
    const wait = this.waitAt(member, request, share?.rank);
    const look = member.send(key, () => driver.check({ key, owner })).catch(() => undefined);
    const answers = Promise.all([ask(wait), look]);
    if (!(await isSettledWithin(this.memberTimeout, answers))) {
      member.isUp = false;
      return undefined;
    }
    const [reply, seen] = await answers.catch(() => []);
    if (!reply) return undefined;
    if (reply.granted) return 'granted';
    // If the key is free or offered at this moment, the holder of the lock takes care of it.
    const holder = seen?.holder ?? null;
    const isOffered = holder !== null && queueLockOf({ key, owner: holder }).owner === reply.holder;
    const remaining = seen && holder !== null ? seen.remaining : reply.remaining;
    return { granted: false, remaining, holder, ahead: reply.ahead + (isOffered ? 0 : 1) };
  }

  /** The wait of the owner, which leaves another member than this one. */
  private waitAt(member: Member, tenancy: Tenancy, rank?: 0 | 1): Wait {
    const before = this.waits.get(tenancy.owner);
    if (before?.queueMember === member) return before;
    if (before) void leave(before);
    const wait = { queueMember: member, lock: queueLockOf(tenancy, rank), hasLock: false, askedAt: 0 };
    this.waits.set(tenancy.owner, wait);
    return wait;
  }
}

/** The queue lock of a key, for an owner. Its owner is another one than that of the key: a message names the owner only. */
export function queueLockOf({ key, owner }: Tenancy, rank: 0 | 1 = 0): Tenancy {
  return { key: `${key}${KEY_MARK}${rank === 0 ? '' : rank}`, owner: owner + OWNER_MARK };
}

async function ask(wait: Wait): Promise<AcquireReply> {
  const { queueMember, lock } = wait;
  wait.askedAt = now();
  const reply = await queueMember.sendInOrder(lock, () =>
    queueMember.store.mutex.acquire({ ...lock, ttl: QUEUE_LOCK_TTL, tokens: 1, queue: true }),
  );
  wait.hasLock = reply.granted;
  return reply;
}

function leave({ queueMember, lock }: Wait): Promise<void> {
  const { mutex } = queueMember.store;
  return queueMember.sendEnd(lock, now() + mutex.queueEntryLifetime, () => mutex.leave(lock)).catch(() => undefined);
}

function isWoken({ member }: Voter): boolean {
  const { wakeUps } = member.store.mutex;
  return wakeUps !== undefined && wakeUps.state !== 'polling';
}
