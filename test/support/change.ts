import { type Change, VOID } from '../../lib/stores/records/record.table.js';

/** {@link VOID} by `record`, without tokens or messages, where nothing else is said. */
export function wholeChange(change: Partial<Change> & Pick<Change, 'key' | 'endsAt'>): Change {
  return { expected: VOID, record: 'record', notBefore: 0, tokens: 0, fence: 0, messages: [], isLazy: false, ...change };
}
