import { SharedQueue } from './shared-queue.js';

export type SharedKind = 'read/write lock' | 'semaphore';

/** What somebody has of a key. `kept:<owner>` has it from the owner's release to the end of its minHold. */
interface Hold {
  /** Permits; `Infinity`: the whole key. */
  readonly count: number;
  endsAt: number;
  /** Offered, and not taken yet. */
  isOffer?: boolean;
}

/** Who has how much of one key, and who waits for it. */
export class SharedKey {
  /** As the one who asked last said. */
  permits = Infinity;
  readonly queue = new SharedQueue();
  private readonly holds = new Map<string, Hold>();
  /** Who has the whole key, and how many permits all others have together. */
  private whole: string | undefined;
  private taken = 0;
  /** No hold ends sooner: until then nobody need be looked for who has run out. */
  private soonest = Infinity;

  constructor(readonly kind: SharedKind) {}

  get isHeld(): boolean {
    return this.holds.size > 0;
  }

  /** Whether nobody has it nor waits for it. */
  get isIdle(): boolean {
    return !this.isHeld && this.queue.size === 0;
  }

  endOf(owner: string): number | undefined {
    return this.holds.get(owner)?.endsAt;
  }

  expire(now: number): void {
    if (now < this.soonest) return;
    this.soonest = Infinity;
    for (const [owner, { endsAt }] of this.holds) {
      if (endsAt <= now) this.drop(owner);
      else this.soonest = Math.min(this.soonest, endsAt);
    }
  }

  has(owner: string | undefined): boolean {
    return owner !== undefined && this.holds.has(owner);
  }

  /** Whether there is room for so much of somebody who has nothing yet, beside an owner whose own it is. */
  hasRoomFor(count: number, beside?: string): boolean {
    if (count === Infinity) return this.holds.size === 0;
    return (this.whole === undefined || this.whole === beside) && this.taken + count <= this.permits;
  }

  put(owner: string, count: number, endsAt: number): void {
    this.drop(owner);
    this.holds.set(owner, { count, endsAt });
    if (count === Infinity) this.whole = owner;
    else this.taken += count;
    this.soonest = Math.min(this.soonest, endsAt);
  }

  /** For a moment, in which its owner takes it. */
  offer(owner: string, count: number, endsAt: number): void {
    this.put(owner, count, endsAt);
    (this.holds.get(owner) as Hold).isOffer = true;
  }

  /** From now on until then; what is repeated brings no end nearer. */
  take(owner: string, endsAt: number): void {
    const hold = this.holds.get(owner);
    if (hold?.isOffer) hold.endsAt = endsAt;
    this.soonest = Math.min(this.soonest, endsAt);
    this.prolong(owner, endsAt);
  }

  /** Never nearer. */
  prolong(owner: string, endsAt: number): void {
    const hold = this.holds.get(owner);
    if (!hold) return;
    hold.isOffer = false;
    hold.endsAt = Math.max(hold.endsAt, endsAt);
  }

  /** Returns how much it was; `undefined`: nothing. */
  drop(owner: string): number | undefined {
    const hold = this.holds.get(owner);
    if (!hold) return undefined;
    this.holds.delete(owner);
    if (owner === this.whole) this.whole = undefined;
    if (hold.count !== Infinity) this.taken -= hold.count;
    return hold.count;
  }

  /** The first holder whose lease ends, with whom permits come free, or the last, with whom the key does. */
  inTheWay(isLast: boolean): { holder: string; endsAt: number } {
    let found: { holder: string; endsAt: number } | undefined;
    for (const [holder, { endsAt }] of this.holds) {
      if (!found || endsAt > found.endsAt === isLast) found = { holder, endsAt };
    }
    return found ?? { holder: '', endsAt: -Infinity };
  }
}
