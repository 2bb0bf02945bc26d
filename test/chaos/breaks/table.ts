import { VOID, type Change, type Found, type RecordTable } from '../../../lib/stores/records/record.table.js';
import type { KeyRecord } from '../../../lib/stores/records/record.work.js';
import { changed, type Break } from './break.js';

/** Stores of records. */
export const RECORD_STORES = ['postgres', 'mysql', 'file'];

/** Defects of a table of records. */
export const tableBreaks: Record<string, Break> = {
  /** A change is made whatever is there. */
  'compares-nothing': {
    expects: 'overlap',
    kinds: ['mutex'],
    stores: RECORD_STORES,
    wrapTable: (table) => changed(table, { exchange: (changes) => changes.map((change) => force(table, change)) }),
  },

  /** Each holder of a key gets another one beside it. */
  'two-holders': {
    expects: 'rows',
    kinds: ['mutex'],
    stores: RECORD_STORES,
    wrapTable: (table) => changed(table, { exchange: (changes) => table.exchange(changes.map(withGhost)) }),
  },
};

function withGhost(change: Change): Change {
  const record = JSON.parse(change.record ?? 'null') as KeyRecord | null;
  if (!record || record.kind === 'count-down latch') return change;
  const [hold] = record.holds;
  if (hold) record.holds = [hold, { ...hold, owner: 'ghost@host:1:00000000-0000-4000-8000-000000000000' }];
  return { ...change, record: JSON.stringify(record) };
}

async function force(table: RecordTable, change: Change): Promise<Found> {
  const send = (one: Change): Promise<Found> => table.exchange([one])[0]!;
  if (change.expected === undefined) return send(change);
  for (;;) {
    const { version, record } = await send({ ...change, expected: undefined, messages: [], tokens: 0 });
    const found = await send({ ...change, expected: record === null ? VOID : version, notBefore: 0 });
    if (found.written) return found;
  }
}
