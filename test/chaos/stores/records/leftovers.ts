import { partsOf } from '../../../../lib/core/model/owner.js';
import type { KeyRecord } from '../../../../lib/stores/records/record.work.js';
import type { Leftover } from '../store.js';

/** ms that a queue entry may last without a request of its owner, and what a clock that is only estimated may add */
const QUEUE_LIFE = 60_000 + 2_000;

/** A record as it is stored. Times are ms of the store's clock. */
export interface StoredRecord {
  key: string;
  /** JSON; null: the key is free */
  record: string | null;
  endsAt: number;
}

/** Each lease that still lasts, each queue in which somebody stands whose process has closed its locks, and each record that ends too late. */
export function leftoversIn(records: readonly StoredRecord[], time: number, pidsOfKilled: ReadonlySet<number>): Leftover[] {
  return records.flatMap((stored) => leftoverOf(stored, time, pidsOfKilled) ?? []);
}

function leftoverOf({ key, record: text, endsAt }: StoredRecord, time: number, pidsOfKilled: ReadonlySet<number>): Leftover | undefined {
  if (text === null || endsAt <= time) return undefined;
  const lasts = Math.round(endsAt - time);
  if (lasts > QUEUE_LIFE) return { key, what: `${key} for ${lasts} ms: ${text}` };
  const record = JSON.parse(text) as KeyRecord;
  if (record.kind === 'count-down latch') return undefined;
  const holds = record.holds.filter((hold) => hold.endsAt > time);
  if (holds.length > 0) return { key, what: `${key}: held for ${lasts} ms: ${JSON.stringify(holds)}` };
  if (record.queueEndsAt <= time) return undefined;
  // With an offer that nobody has confirmed in time, all entries of that inbox are over.
  const unconfirmed = record.holds.flatMap(({ token, inbox }) => (token === null ? [inbox] : []));
  const queue = record.queue.filter(({ inbox }) => inbox === '' || !unconfirmed.includes(inbox));
  const owners = queue.map(({ owner }) => owner).filter((owner) => !pidsOfKilled.has(partsOf(owner)?.pid ?? 0));
  return owners.length === 0 ? undefined : { key, what: `${key}: queue entries of live processes: ${owners.join(' ')}`, owners };
}
