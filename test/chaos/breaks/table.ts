import { VOID, type Change, type Found, type RecordTable } from '../../../lib/stores/records/record.table.js';
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
};

async function force(table: RecordTable, change: Change): Promise<Found> {
  const send = (one: Change): Promise<Found> => table.exchange([one])[0]!;
  if (change.expected === undefined) return send(change);
  for (;;) {
    const { version, record } = await send({ ...change, expected: undefined, messages: [], tokens: 0 });
    const found = await send({ ...change, expected: record === null ? VOID : version, notBefore: 0 });
    if (found.written) return found;
  }
}
