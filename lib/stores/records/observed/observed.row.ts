import { QUEUE_LIFE, type Hold, type KeyRecord } from '../record.work.js';
import type { CasRow } from './cas.table.js';
import type { Observations, Stamp } from './observations.js';

/** A row as it is stored. */
interface Row {
  /** In the place of each end: the store's count of writes when it was set, or later; `null`: that of the row. */
  readonly record: KeyRecord | null;
  readonly fence: number;
}

/** An end in a record, with its length and the name of the request that set it. */
interface End {
  readonly at: number | null;
  readonly ttl: number;
  readonly stamp: string;
  readonly set: (at: number) => void;
}

/**
 * | record | ends | their length |
 * |---|---|---|
 * | a lock | of each hold | its `ttl` |
 * | a lock with a queue | of the queue | the same for all |
 * | a latch | its own, and that of the last operation of each line | its `ttl` |
 */
function endsOf(record: KeyRecord): End[] {
  if (record.kind === 'count-down latch') {
    const { lines } = record;
    const ofLines = Object.entries(lines).map(([name, [number, reply, at, ttl, stamp]]): End => {
      return { at, ttl: ttl!, stamp: stamp!, set: (end) => (lines[name] = [number, reply, end, ttl!, stamp!]) };
    });
    return [endOf(record), ...ofLines];
  }
  const ends = record.holds.map(endOf);
  const { queue, queueEndsAt, queueStamp } = record;
  if (queue.length > 0) ends.push({ at: queueEndsAt, ttl: QUEUE_LIFE, stamp: queueStamp!, set: (at) => (record.queueEndsAt = at) });
  return ends;
}

function endOf(of: Pick<Hold, 'endsAt' | 'ttl' | 'stamp'>): End {
  return { at: of.endsAt, ttl: of.ttl, stamp: of.stamp!, set: (at) => (of.endsAt = at) };
}

/** @param text a record whose ends are times of this process. */
export function rowOf(key: string, text: string | null, fence: number, seen: Observations): { text: string; stamps: readonly Stamp[] } {
  const record = text === null ? null : (JSON.parse(text) as KeyRecord);
  const stamps = (record ? endsOf(record) : []).map(({ stamp, set }): Stamp => {
    const revision = seen.revisionOf(key, stamp);
    set(revision ?? NaN);
    return [stamp, revision];
  });
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
  const ends = endsOf(record);
  const sights = seen.see(
    key,
    ends.map(({ stamp, at }) => [stamp, at ?? revision]),
  );
  for (const { stamp, ttl, set } of ends) set(sights.get(stamp)!.time + ttl);
  return { record: JSON.stringify(record), fence };
}

/** Milliseconds of the longest lease in a row; `Infinity`: it is not valid. */
export function longestIn(text: string): number {
  try {
    const { record } = JSON.parse(text) as Row;
    return Math.max(0, ...(record ? endsOf(record) : []).map(({ ttl }) => ttl));
  } catch {
    return Infinity;
  }
}
