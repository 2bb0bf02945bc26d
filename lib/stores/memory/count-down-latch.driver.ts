import { after, now } from '../../core/util/clock.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import type { LatchChange, LatchDriver, LatchLook, LatchOperation, LatchState } from '../../core/store/latch-driver.js';
import type { MemoryWakeUps } from './memory.wakeups.js';
import { otherKind } from './shared-keys.js';

/** Milliseconds between two looks for latches whose end has passed. */
const SWEEP = 1000;

interface Done<Reply> {
  readonly number: number;
  readonly reply: Reply;
  /** Until when a repeat may come. */
  readonly endsAt: number;
}

interface Latch {
  readonly id: string;
  round: number;
  count: number;
  endsAt: number;
  /** The last operation of each line. */
  readonly operations: Map<string, Done<number | boolean>>;
  readonly waiters: Set<string>;
}

/** The count-down latch in the memory of one process; it answers as the Redis scripts do, step by step. */
export class MemoryCountDownLatchDriver implements LatchDriver {
  private readonly latches = new Map<string, Latch>();
  private sweeper: NodeJS.Timeout | undefined;

  constructor(
    readonly wakeUps: MemoryWakeUps,
    /** What else a key is in use as. */
    private readonly otherKindOf: (key: string) => string | undefined,
  ) {}

  async trySetCount({ key, ttl, operation, count }: LatchChange & { readonly count: number }): Promise<boolean> {
    const latch = this.open(key);
    const known = latch?.operations.get(operation.line);
    if (known && known.number >= operation.number) return known.number === operation.number && known.reply === true;
    if (latch && latch.count > 0) return false;
    for (const [line, { endsAt }] of latch?.operations ?? []) if (endsAt <= now()) latch?.operations.delete(line);
    const set = latch ?? this.create(key, operation);
    set.count = count;
    set.round++;
    done(set, operation, true, ttl);
    set.endsAt = Math.max(set.endsAt, now() + ttl);
    return true;
  }

  async countDown({ key, ttl, operation }: LatchChange): Promise<number> {
    const latch = this.open(key);
    if (!latch) return 0;
    const known = latch.operations.get(operation.line);
    if (known && known.number >= operation.number) {
      return known.number === operation.number ? Number(known.reply) : latch.count;
    }
    const before = latch.count;
    latch.count = Math.max(before - 1, 0);
    done(latch, operation, latch.count, ttl);
    if (before > 0) latch.endsAt = Math.max(latch.endsAt, now() + ttl);
    if (latch.count === 0) {
      for (const owner of latch.waiters) this.wakeUps.wake(owner);
      latch.waiters.clear();
    }
    return latch.count;
  }

  async look({ key, owner, queue }: LatchLook): Promise<LatchState | undefined> {
    const latch = this.open(key);
    if (!latch) return undefined;
    const { count, id, round, endsAt } = latch;
    if (queue && count > 0) latch.waiters.add(owner);
    return { count, id, round, remaining: endsAt - now() };
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    this.latches.get(key)?.waiters.delete(owner);
  }

  kindOf(key: string): 'count-down latch' | undefined {
    return this.live(key) && 'count-down latch';
  }

  /** @throws {LockConfigError} when the key is in use as another kind of lock. */
  private open(key: string): Latch | undefined {
    const other = this.otherKindOf(key);
    if (other !== undefined) throw otherKind(key, other, 'count-down latch');
    return this.live(key);
  }

  private live(key: string): Latch | undefined {
    const latch = this.latches.get(key);
    if (!latch || latch.endsAt > now()) return latch;
    this.latches.delete(key);
    return undefined;
  }

  private create(key: string, { line, number }: LatchOperation): Latch {
    const latch: Latch = { id: `${line}:${number}`, round: 0, count: 0, endsAt: 0, operations: new Map(), waiters: new Set() };
    this.latches.set(key, latch);
    this.sweeper ??= after(SWEEP, () => this.sweep()).unref();
    return latch;
  }

  /** Whom nobody asks after would stay for ever. */
  private sweep(): void {
    for (const key of [...this.latches.keys()]) this.live(key);
    this.sweeper = this.latches.size > 0 ? after(SWEEP, () => this.sweep()).unref() : undefined;
  }
}

function done(latch: Latch, { line, number }: LatchOperation, reply: number | boolean, ttl: number): void {
  latch.operations.set(line, { number, reply, endsAt: now() + ttl });
}
