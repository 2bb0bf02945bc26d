import type { LatchChange, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import type { LatchRecord, RecordWork } from './record.work.js';

const KIND = 'count-down latch';

/** The steps of each verb on the record of a count-down latch. As {@link LeaseSteps}, they can be done again on a newer record. */
export const latchSteps = {
  trySetCount(work: RecordWork, change: LatchChange & { readonly count: number }): boolean {
    const { ttl, count } = change;
    const { line, number } = change.operation;
    const present = work.find<LatchRecord>(KIND);
    const known = present?.lines[line];
    if (known && known[0] >= number) return known[0] === number && known[1] === 1;
    if (present && present.count > 0) return false;
    const made: LatchRecord = { kind: KIND, id: `${line}:${number}`, count, round: 0, endsAt: 0, ttl: 0, lines: {}, waiters: {} };
    const latch = work.open<LatchRecord>(KIND, () => made);
    latch.count = count;
    latch.round++;
    work.prolong(latch, ttl);
    note(work, latch, change, 1);
    return true;
  },

  countDown(work: RecordWork, change: LatchChange): number {
    const { line, number } = change.operation;
    const latch = work.find<LatchRecord>(KIND);
    if (!latch) return 0;
    const known = latch.lines[line];
    if (known && known[0] >= number) return known[0] === number ? known[1] : latch.count;
    if (latch.count > 0) {
      latch.count--;
      work.prolong(latch, change.ttl);
    }
    note(work, latch, change, latch.count);
    if (latch.count === 0) {
      for (const [owner, inbox] of Object.entries(latch.waiters)) work.notify({ owner, inbox });
      latch.waiters = {};
    }
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

/** Remembers the operation, and forgets those that are not repeated any more: else each change would write all that were made before. */
function note(work: RecordWork, { lines }: LatchRecord, { operation, ttl, knownFor = ttl }: LatchChange, reply: number): void {
  const { early, late, stamp } = work.time;
  for (const [line, [, , endsAt]] of Object.entries(lines)) if (endsAt <= early) delete lines[line];
  const endsAt = late + knownFor;
  lines[operation.line] = stamp === undefined ? [operation.number, reply, endsAt] : [operation.number, reply, endsAt, knownFor, stamp];
  work.changed(true);
}
