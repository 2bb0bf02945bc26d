import { partsOf } from '../../../lib/core/model/owner.js';
import { ALL, type Hold, type LeaseRecord, type KeyRecord } from '../../../lib/stores/records/record.work.js';
import type { StoredRecord } from '../stores/records/leftovers.js';
import type { Violation } from './oracle.js';

/** G2, as the server has it: no two holders of a mutex, no reader beside a writer, no more permits than there are. */
export class RowExclusion {
  /** Most permits that any request has named for a key. */
  private readonly permits = new Map<string, number>();

  /** @param seesAll what is written: callers of a semaphore name different numbers, and the row has the last one. Else no semaphore is judged. */
  constructor(private readonly seesAll = false) {}

  /** @param time of the clock of the server. @param at of the history. */
  look(row: StoredRecord, time: number, at: number): Violation[] {
    const record = recordOf(row);
    const holds = holdsOf(record, time);
    const permits = Math.max(this.permits.get(row.key) ?? 0, record.permits);
    this.permits.set(row.key, permits);
    if (holds.length < 2 || !exclude(holds, this.seesAll ? permits : Infinity)) return [];
    const names = holds.map(({ owner, count, endsAt }) => `${owner} (${count}) until ${endsAt.toFixed(1)}`);
    return [{ oracle: 'rows', guarantee: 'G2', key: row.key, at, what: `at ${time.toFixed(1)} held by ${names.join(' and by ')}` }];
  }
}

/** What has no record of a lock has no holds. */
export function recordOf({ record: text }: Pick<StoredRecord, 'record'>): LeaseRecord {
  const record = text === null ? undefined : (JSON.parse(text) as KeyRecord);
  return record && record.kind !== 'count-down latch' ? record : { kind: 'mutex', permits: ALL, holds: [], queue: [], queueEndsAt: 0 };
}

/** Those that last, without offers and what is kept. */
export function holdsOf({ holds }: LeaseRecord, time: number): Hold[] {
  return holds.filter(({ token, endsAt }) => token !== null && endsAt > time);
}

/** Those of one process may be beside each other: a call chain reads under its own write lock. */
function exclude(holds: readonly Hold[], permits: number): boolean {
  const whole = holds.find(({ count }) => count >= ALL);
  if (whole) return holds.some(({ owner }) => partsOf(owner)?.pid !== partsOf(whole.owner)?.pid);
  return holds.reduce((sum, { count }) => sum + count, 0) > permits;
}
