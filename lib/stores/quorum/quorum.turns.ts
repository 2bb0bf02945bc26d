import type { AcquireReply, AcquireRequest, LeaseDriver, Tenancy } from '../../core/store/lease-driver.js';
import { isSettledWithin, now } from '../../core/util/clock.js';
import { idOf, type Member } from './quorum.member.js';
import type { Refusal } from './quorum.votes.js';

/** Milliseconds after which the turn of a process that died is over. Waiters ask at least twice as often. */
export const TURN = 2000;

/** No key of a user has a control character. */
const MARK = '\u001fturn';
const OWNER_MARK = ';turn';

interface Wait {
  readonly desk: Member;
  readonly turn: Tenancy;
  isNext: boolean;
  askedAt: number;
  /** Whose turn it is, with the token that it has, and since when on our clock. */
  seen: string;
  seenAt: number;
}

/**
 * Who of those that wait for a key may queue at all members: one of each rank, since ranks have one order everywhere. More, and the members would offer
 * the key to different waiters. The others queue for this turn, which is a mutex at one member, the desk: the first one in the given order that answers.
 * Only the order of the waiters depends on it.
 */
export class Turns {
  private readonly waits = new Map<string, Wait>();
  private readonly desks: readonly Member[];

  /** @param driverOf of the lock that is waited for. */
  constructor(
    members: readonly Member[],
    private readonly driverOf: (member: Member) => LeaseDriver,
    private readonly memberTimeout: number,
  ) {
    // Where waiters are not woken, each turn would begin late.
    this.desks = [...members].sort((a, b) => Number(isWoken(b)) - Number(isWoken(a)));
  }

  /** Asks for the turn. `undefined`: the owner has it, or no member answers; else what is to be told to those who wait. */
  async ask(request: AcquireRequest): Promise<Refusal | undefined> {
    const id = idOf(request.key, request.owner);
    const wait = this.waits.get(id);
    if (wait?.isNext && wait.desk.isUp) {
      if (now() > wait.askedAt + TURN / 3) void ask(wait).catch(() => undefined);
      return undefined;
    }
    const tried = new Set<Member>();
    for (let desk = this.desk; desk && !tried.has(desk); desk = this.desk) {
      tried.add(desk);
      const own = this.waits.get(id);
      if (own && own.desk !== desk) void leave(own);
      const next: Wait =
        own?.desk === desk ? own : { desk, turn: turnOf(request, request.share?.rank), isNext: false, askedAt: 0, seen: '', seenAt: 0 };
      this.waits.set(id, next);
      const { key, owner } = request;
      const look = desk.heard(this.driverOf(desk).check({ key, owner }), key).catch(() => undefined);
      const answers = Promise.all([ask(next), look]);
      if (!(await isSettledWithin(this.memberTimeout, answers))) desk.isUp = false;
      else {
        const [turn, seen] = await answers.catch(() => []);
        if (!turn) continue;
        if (turn.granted) return undefined;
        void watch(next).catch(() => undefined);
        // Of a key that is free or offered at this moment, the one whose turn it is takes care.
        const holder = seen?.holder ?? null;
        const isOffered = holder !== null && turnOf({ key, owner: holder }).owner === turn.holder;
        const remaining = seen && holder !== null ? seen.remaining : turn.remaining;
        return { granted: false, remaining, holder, ahead: turn.ahead + (isOffered ? 0 : 1) };
      }
    }
    return undefined;
  }

  /** The owner waits no more. */
  end({ key, owner }: Tenancy): Promise<void> | undefined {
    const id = idOf(key, owner);
    const wait = this.waits.get(id);
    if (!wait) return undefined;
    this.waits.delete(id);
    return leave(wait);
  }

  /** Whether the owner waits, as far as the desk knows. */
  async isWaiting(tenancy: Tenancy): Promise<boolean> {
    const { desk } = this;
    if (!desk) return false;
    const ranks = this.driverOf(desk).isShared ? ([0, 1] as const) : ([0] as const);
    const checks = ranks.map((rank) => {
      const turn = turnOf(tenancy, rank);
      return desk.heard(desk.store.mutex.check(turn), turn.key);
    });
    return (await Promise.all(checks)).some(({ state }) => state === 'held' || state === 'queued');
  }

  private get desk(): Member | undefined {
    return this.desks.find(({ isUp }) => isUp);
  }
}

/** Its owner is another one than that of the key: a message names the owner only. */
export function turnOf({ key, owner }: Tenancy, rank: 0 | 1 = 0): Tenancy {
  return { key: `${key}${MARK}${rank === 0 ? '' : rank}`, owner: owner + OWNER_MARK };
}

/** Whether it is the key of a turn. */
export function isTurn(key: string): boolean {
  return key.includes(MARK);
}

/** The one that waits for the key, by the one that waits for the turn. */
export function ownerOfTurn(owner: string): string {
  return owner.endsWith(OWNER_MARK) ? owner.slice(0, -OWNER_MARK.length) : owner;
}

async function ask(wait: Wait): Promise<AcquireReply> {
  const { desk, turn } = wait;
  wait.askedAt = now();
  const reply = await desk.inOrder(turn, () => desk.store.mutex.acquire({ ...turn, ttl: TURN, tokens: 1, queue: true }));
  wait.isNext = reply.granted;
  return reply;
}

/**
 * Whoever has the turn asks for it again within a TURN, and gets another token each time. The desk's clock may be set back, so that the turn of a process
 * that died would last for longer: it is ended by our clock. One that is alive loses nothing but its place.
 */
async function watch(wait: Wait): Promise<void> {
  const { mutex } = wait.desk.store;
  const { holder, token } = await mutex.check(wait.turn);
  const seen = `${holder} ${token}`;
  if (seen !== wait.seen) [wait.seen, wait.seenAt] = [seen, now()];
  else if (holder !== null && token !== null && now() > wait.seenAt + TURN)
    await mutex.release({ ...wait.turn, owner: holder, keepFor: 0 });
}

function leave({ desk, turn }: Wait): Promise<void> {
  const { mutex } = desk.store;
  return desk.giveBack(turn, now() + mutex.queueEntryLifetime, () => mutex.leave(turn)).catch(() => undefined);
}

function isWoken({ store }: Member): boolean {
  const { wakeUps } = store.mutex;
  return wakeUps !== undefined && wakeUps.state !== 'polling';
}
