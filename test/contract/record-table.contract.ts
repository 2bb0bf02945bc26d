import type { RecordTable } from '../../lib/stores/records/record.table.js';
import { tableChangesContract } from './record-table.changes.contract.js';
import { tableClientsContract } from './record-table.clients.contract.js';
import { tableMessagesContract } from './record-table.messages.contract.js';
import { tableTextsContract } from './record-table.texts.contract.js';

/** What a table may do without. */
export type TableExtra = 'wakeUps' | 'keys';

export interface RecordTableContractOptions {
  readonly without?: readonly TableExtra[];
  /** Deletes the row of a key, as the table itself does an hour after its end. */
  readonly sweep?: (key: string) => Promise<unknown>;
}

/**
 * What the locks ask of a table of records.
 *
 * @param makeTable opens the table once more, onto the same data, with clients of its own: as another process would. Each is closed when its test ends.
 */
export function recordTableContract(
  name: string,
  makeTable: () => RecordTable,
  { without = [], sweep }: RecordTableContractOptions = {},
): void {
  describe(`a table of records on ${name}`, () => {
    tableChangesContract(makeTable, sweep);
    tableClientsContract(makeTable);
    tableTextsContract(makeTable, !without.includes('keys'));
    if (!without.includes('wakeUps')) tableMessagesContract(makeTable);
  });
}
