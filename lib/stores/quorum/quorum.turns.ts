import type { AcquireRequest, LeaseDriver, Tenancy } from '../../core/store/lease-driver.js';
import { isSettledWithin, now } from '../../core/util/clock.js';
import { idOf, type Member } from './quorum.member.js';
import type { Refusal } from './quorum.votes.js';

/** Milliseconds after which the turn of a process that died is over. Waiters ask at least twice as often. */
export const TURN = 3000;

interface Wait {
  readonly desk: Member;
  isNext: boolean;
  askedAt: number;
}

/**
 * Who of those that wait for a key may queue at all members: one at a time, or the members would offer the key to different waiters. The others queue
 * for this turn, which is a lock at one member, the desk: the first one in the given order that answers. Nothing but the order of the waiters rests on
 * it.
 */
export class Turns {
  private readonly waits = new Map<string, Wait>();
  private readonly desks: readonly Member[];

  /** @param driverOf where turns are taken: a lock that one owner has at a time. */
  constructor(
    members: readonly Member[],
    private readonly driverOf: (member: Member) => LeaseDriver,
    private readonly memberTimeout: number,
  ) {
    // Where waiters are not woken, each turn would begin late.
    this.desks = [...members].sort((a, b) => Number(isWoken(driverOf(b))) - Number(isWoken(driverOf(a))));
  }

  /** Asks for the turn. `undefined`: the owner has it, or no member answers; else what is to be told to those who wait. */
  async ask(request: AcquireRequest, driverOf: (member: Member) => LeaseDriver): Promise<Refusal | undefined> {
    const id = idOf(request.key, request.owner);
    const wait = this.waits.get(id);
    if (wait?.isNext && wait.desk.isUp) {
      if (now() > wait.askedAt + TURN / 3) void this.askAt(wait, request).catch(() => undefined);
      return undefined;
    }
    const tried = new Set<Member>();
    for (let desk = this.desk; desk && !tried.has(desk); desk = this.desk) {
      tried.add(desk);
      const own = this.waits.get(id);
      if (own && own.desk !== desk) this.leaveAt(own.desk, request);
      const next: Wait = own?.desk === desk ? own : { desk, isNext: false, askedAt: 0 };
      this.waits.set(id, next);
      const { key, owner } = request;
      const look = desk.heard(driverOf(desk).check({ key, owner }), key).catch(() => undefined);
      const answers = Promise.all([this.askAt(next, request), look]);
      if (!(await isSettledWithin(this.memberTimeout, answers))) desk.isUp = false;
      else {
        const [turn, seen] = await answers.catch(() => []);
        if (!turn) continue;
        if (turn.granted) return undefined;
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
    return this.leaveAt(wait.desk, { key, owner });
  }

  /** Whether the owner waits, as far as the desk knows. */
  async isWaiting(tenancy: Tenancy): Promise<boolean> {
    const { desk } = this;
    if (!desk) return false;
    const turn = turnOf(tenancy);
    const { state } = await desk.heard(this.driverOf(desk).check(turn), turn.key);
    return state === 'held' || state === 'queued';
  }

  private get desk(): Member | undefined {
    return this.desks.find(({ isUp }) => isUp);
  }

  private async askAt(wait: Wait, { key, owner, share }: AcquireRequest) {
    const driver = this.driverOf(wait.desk);
    const turn = turnOf({ key, owner });
    const whole = driver.isShared ? { count: Infinity, permits: Infinity, rank: share?.rank ?? 0 } : undefined;
    wait.askedAt = now();
    const reply = await wait.desk.inOrder(turn, () => driver.acquire({ ...turn, ttl: TURN, tokens: 1, queue: true, share: whole }));
    wait.isNext = reply.granted;
    return reply;
  }

  private leaveAt(desk: Member, tenancy: Tenancy): Promise<void> {
    const turn = turnOf(tenancy);
    return desk.inOrder(turn, () => this.driverOf(desk).leave(turn)).catch(() => undefined);
  }
}

/** Its owner is another one than that of the key: a message names the owner only. */
export function turnOf({ key, owner }: Tenancy): Tenancy {
  return { key: `${key}:turn`, owner: `${owner};turn` };
}

function isWoken({ wakeUps }: LeaseDriver): boolean {
  return wakeUps !== undefined && wakeUps.state !== 'polling';
}
