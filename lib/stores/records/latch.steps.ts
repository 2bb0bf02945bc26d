import type { LatchChange, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import type { LatchRecord, RecordWork } from './record.work.js';

const KIND = 'count-down latch';

/** What each verb does to the record of a count-down latch. As {@link LeaseSteps}, they can be done again on a newer record. */
export const latchSteps = {
  trySetCount(work: RecordWork, { ttl, operation, count }: LatchChange & { readonly count: number }): boolean {
    const { line, number } = operation;
    const present = work.find<LatchRecord>(KIND);
    const known = present?.lines[line];
    if (known && known[0] >= number) return known[0] === number && known[1] === 1;
    if (present && present.count > 0) return false;
    const { early, late } = work.time;
    const latch =
      present ??
      work.open<LatchRecord>(KIND, () => ({
        kind: KIND,
        id: `${line}:${number}`,
        count,
        round: 0,
        endsAt: 0,
        ttl: 0,
        lines: {},
        waiters: {},
      }));
    for (const [each, [, , endsAt]] of Object.entries(latch.lines)) if (endsAt <= early) delete latch.lines[each];
    latch.count = count;
    latch.round++;
    prolong(latch, late, ttl);
    latch.lines[line] = [number, 1, late + ttl];
    work.changed(true);
    return true;
  },

  countDown(work: RecordWork, { ttl, operation: { line, number } }: LatchChange): number {
    const latch = work.find<LatchRecord>(KIND);
    if (!latch) return 0;
    const known = latch.lines[line];
    if (known && known[0] >= number) return known[0] === number ? known[1] : latch.count;
    const endsAt = work.time.late + ttl;
    if (latch.count > 0) {
      latch.count--;
      prolong(latch, work.time.late, ttl);
    }
    latch.lines[line] = [number, latch.count, endsAt];
    if (latch.count === 0) {
      for (const [owner, inbox] of Object.entries(latch.waiters)) work.tell({ owner, inbox });
      latch.waiters = {};
    }
    work.changed(true);
    return latch.count;
  },

  /** @param inbox where the owner can be woken. */
  look(work: RecordWork, { owner, queue }: LatchLook, inbox: string): LatchState | undefined {
    const latch = work.find<LatchRecord>(KIND);
    if (!latch) return undefined;
    const { count, id, round, endsAt } = latch;
    if (queue && count > 0 && latch.waiters[owner] !== inbox) {
      latch.waiters[owner] = inbox;
      work.changed();
    }
    return { count, id, round, remaining: Math.max(0, Math.min(endsAt - work.time.early, latch.ttl)) };
  },

  leave(work: RecordWork, { owner }: Tenancy): void {
    const { record } = work;
    if (record?.kind === KIND && owner in record.waiters) {
      delete record.waiters[owner];
      work.changed();
    }
  },
};

/** Never brings the end nearer. */
function prolong(latch: LatchRecord, late: number, ttl: number): void {
  if (latch.endsAt >= late + ttl) return;
  latch.endsAt = late + ttl;
  latch.ttl = ttl;
}
