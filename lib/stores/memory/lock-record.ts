import type { Queue } from './queue.js';

export type LockKind = 'mutex' | 'read/write lock' | 'semaphore';

/** What an owner has of a key. */
export interface Hold {
  /** `kept:<owner>` from its release to the end of its minHold. */
  readonly owner: string;
  /** Permits. */
  readonly count: number;
  endsAt: number;
  /** The last token of its last grant; `null`: it is an offer, or kept. */
  token: number | null;
}

/** Who holds how much of one key, and who waits for it. */
export class LockRecord {
  /** How many permits there are, by the last request. */
  permits = 0;
  taken = 0;
  /** Made when somebody waits. */
  queue: Queue | undefined;
  /** Most keys have one holder, which is found without a hash of its owner. */
  private first: Hold | undefined;
  private others: Map<string, Hold> | undefined;
  /** No hold ends earlier. */
  private soonest = Infinity;

  constructor(readonly kind: LockKind) {}

  get isIdle(): boolean {
    return this.taken === 0 && !this.queue?.head;
  }

  get holds(): Hold[] {
    return [...(this.first ? [this.first] : []), ...(this.others?.values() ?? [])];
  }

  holdOf(owner: string): Hold | undefined {
    return this.first?.owner === owner ? this.first : this.others?.get(owner);
  }

  /** Drops the holds that have ended, and returns whether nothing is left. */
  isOver(time: number): boolean {
    if (time >= this.soonest) {
      this.soonest = Infinity;
      for (const { owner, endsAt } of this.holds) {
        if (endsAt <= time) this.drop(owner);
        else this.soonest = Math.min(this.soonest, endsAt);
      }
    }
    return this.isIdle;
  }

  /** For an owner that holds nothing. */
  put(owner: string, count: number, endsAt: number): void {
    const hold = { owner, count, endsAt, token: null };
    if (this.first) (this.others ??= new Map<string, Hold>()).set(owner, hold);
    else this.first = hold;
    this.taken += count;
    this.soonest = Math.min(this.soonest, endsAt);
  }

  /** Never brings the end nearer. */
  prolong(owner: string, endsAt: number): Hold | undefined {
    const hold = this.holdOf(owner);
    if (hold) hold.endsAt = Math.max(hold.endsAt, endsAt);
    return hold;
  }

  drop(owner: string): Hold | undefined {
    const hold = this.holdOf(owner);
    if (!hold) return undefined;
    if (hold === this.first) this.first = undefined;
    else this.others?.delete(owner);
    this.taken -= hold.count;
    return hold;
  }

  /** The hold that a waiter waits for: the last one to end if it wants all permits, else the first. */
  inTheWay(wantsAll: boolean): Hold | undefined {
    return this.holds.reduce<Hold | undefined>(
      (found, hold) => (!found || hold.endsAt > found.endsAt === wantsAll ? hold : found),
      undefined,
    );
  }
}
