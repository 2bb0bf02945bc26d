import { QUEUE_LIFE, type KeyRecord } from '../record.work.js';
import type { CasRow } from './cas.table.js';
import type { Observations, Stamp } from './observations.js';

/** A row as it is stored. */
interface Row {
  /** In the place of each end: the store's count of writes when it was set, or later; `null`: that of the row. */
  readonly record: KeyRecord | null;
  readonly fence: number;
}

/** Replaces each end of a record. Each has its length and the name of the request that set it beside it. */
function replaceEnds(record: KeyRecord, replace: (end: number, ttl: number, stamp: string) => number): void {
  if (record.kind === 'count-down latch') {
    record.endsAt = replace(record.endsAt, record.ttl, record.stamp!);
    for (const [name, [number, reply, end, ttl, stamp]] of Object.entries(record.lines)) {
      record.lines[name] = [number, reply, replace(end, ttl!, stamp!), ttl!, stamp!];
    }
    return;
  }
  for (const hold of record.holds) hold.endsAt = replace(hold.endsAt, hold.ttl, hold.stamp!);
  if (record.queue.length > 0) record.queueEndsAt = replace(record.queueEndsAt, QUEUE_LIFE, record.queueStamp!);
}

/** @param text a record whose ends are times of this process. */
export function rowOf(key: string, text: string | null, fence: number, seen: Observations): { text: string; stamps: readonly Stamp[] } {
  const stamps: Stamp[] = [];
  const record = text === null ? null : (JSON.parse(text) as KeyRecord);
  if (record) {
    replaceEnds(record, (_end, _ttl, stamp) => {
      const revision = seen.revisionOf(key, stamp);
      stamps.push([stamp, revision]);
      return revision ?? NaN;
    });
  }
  return { text: JSON.stringify({ record, fence } satisfies Row), stamps };
}

/**
 * The record with its ends as this process counts them, each so long after the request that set it was seen first.
 *
 * @throws {Error} if the row is not valid.
 */
export function recordIn(key: string, { text, revision }: CasRow, seen: Observations): { record: string | null; fence: number } {
  const { record, fence } = JSON.parse(text) as Row;
  if (!record) return { record, fence };
  const stamps: Stamp[] = [];
  replaceEnds(record, (end: number | null, _ttl, stamp) => {
    stamps.push([stamp, end ?? revision]);
    return NaN;
  });
  const sights = seen.see(key, stamps);
  replaceEnds(record, (_end, ttl, stamp) => sights.get(stamp)!.time + ttl);
  return { record: JSON.stringify(record), fence };
}

/** Milliseconds of the longest lease in a row; `Infinity`: it is not valid. */
export function longestIn(text: string): number {
  let longest = 0;
  try {
    const { record } = JSON.parse(text) as Row;
    if (record) replaceEnds(record, (_end, ttl) => (longest = Math.max(longest, ttl)));
    return longest;
  } catch {
    return Infinity;
  }
}
