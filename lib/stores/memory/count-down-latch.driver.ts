import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import { now } from '../../core/util/clock.js';
import type { MemoryRecords } from './memory.records.js';
import type { MemoryWakeUps } from './memory.wakeups.js';

/** The last operation of a line. */
interface Operation {
  readonly number: number;
  readonly reply: number | boolean;
  /** Until then it may be repeated. */
  readonly endsAt: number;
}

export class Latch {
  readonly kind = 'count-down latch';
  round = 0;
  count = 0;
  endsAt = 0;
  /** By line. */
  readonly operations = new Map<string, Operation>();
  readonly waiters = new Set<string>();

  constructor(readonly id: string) {}

  isOver(time: number): boolean {
    return this.endsAt <= time;
  }
}

/** The count-down latches in the memory of one process. It answers as the Redis scripts do. */
export class MemoryCountDownLatchDriver implements LatchDriver {
  constructor(
    private readonly records: MemoryRecords,
    readonly wakeUps: MemoryWakeUps,
  ) {}

  async trySetCount({ key, ttl, operation, count }: LatchChange & { readonly count: number }): Promise<boolean> {
    const { line, number } = operation;
    const time = now();
    const endsAt = time + ttl;
    const present = this.records.open<Latch>(key, 'count-down latch', time);
    const known = present?.operations.get(line);
    if (known && known.number >= number) return known.number === number && known.reply === true;
    if (present && present.count > 0) return false;
    const latch = present ?? this.records.add(key, new Latch(`${line}:${number}`));
    for (const [each, { endsAt: end }] of latch.operations) if (end <= time) latch.operations.delete(each);
    latch.count = count;
    latch.round++;
    latch.endsAt = Math.max(latch.endsAt, endsAt);
    latch.operations.set(line, { number, reply: true, endsAt });
    return true;
  }

  async countDown({ key, ttl, operation: { line, number } }: LatchChange): Promise<number> {
    const time = now();
    const latch = this.records.open<Latch>(key, 'count-down latch', time);
    if (!latch) return 0;
    const known = latch.operations.get(line);
    if (known && known.number >= number) return known.number === number ? Number(known.reply) : latch.count;
    const endsAt = time + ttl;
    if (latch.count > 0) {
      latch.count--;
      latch.endsAt = Math.max(latch.endsAt, endsAt);
    }
    latch.operations.set(line, { number, reply: latch.count, endsAt });
    if (latch.count === 0) {
      for (const owner of latch.waiters) this.wakeUps.wake(owner);
      latch.waiters.clear();
    }
    return latch.count;
  }

  async look({ key, owner, queue }: LatchLook): Promise<LatchState | undefined> {
    const time = now();
    const latch = this.records.open<Latch>(key, 'count-down latch', time);
    if (!latch) return undefined;
    const { count, id, round, endsAt } = latch;
    if (queue && count > 0) latch.waiters.add(owner);
    return { count, id, round, remaining: endsAt - time };
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    this.records.find<Latch>(key, 'count-down latch', now())?.waiters.delete(owner);
  }
}
