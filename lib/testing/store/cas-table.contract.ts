import type { CasTable } from '../../stores/records/observed/cas.table.js';
import { type RecordTable, TOUCH, VOID } from '../../stores/records/record.table.js';
import { casCountContract } from './cas-table.count.contract.js';
import { tableOpener } from './open-tables.js';
import { tableChangesContract } from './record-table.changes.contract.js';
import { tableClientsContract } from './record-table.clients.contract.js';
import { type TableContractOptions, tableMessagesContract, tableTextsContract } from './record-table.contract.js';
import { describe, runBy } from './runner.js';

/** Options of {@link casTableContract}. */
export interface CasTableContractOptions extends TableContractOptions {
  /** Parts that the table does not have. */
  readonly without?: readonly ('wakeUps' | 'keys' | 'count' | 'sweep')[];
}

/**
 * The promises that `observedTable()` needs of a store that compares and sets, and has no clock.
 *
 * @param makeTable opens the table once more, onto the same data, with clients of its own: as another process would. Each is closed when its test ends.
 */
export function casTableContract(
  name: string,
  makeTable: () => CasTable,
  { without = [], sweep, runner }: CasTableContractOptions = {},
): void {
  runBy(runner);
  describe(`a table that compares and sets on ${name}`, () => {
    const setting = tableOpener(() => untimed(makeTable()), false);
    tableChangesContract(setting, sweep);
    tableClientsContract(setting);
    tableTextsContract(setting, !without.includes('keys'));
    if (!without.includes('wakeUps')) tableMessagesContract(setting);
    if (!without.includes('count')) casCountContract(makeTable, !without.includes('sweep'));
  });
}

/** The table as one of records that have no end and no fence: for the tests that are the same for both. */
function untimed(table: CasTable): RecordTable {
  const expectedOf = (expected: string | undefined): 'touch' | 'look' | { version: string | undefined } => {
    if (expected === TOUCH) return 'touch';
    return expected === undefined ? 'look' : { version: expected === VOID ? undefined : expected };
  };
  return {
    name: table.name,
    requestTimeout: table.requestTimeout,
    wakeUps: table.wakeUps,
    keys: table.keys && ((prefix) => table.keys!(prefix)),
    close: () => table.close(),
    exchange: (changes) =>
      table
        .exchange(
          changes.map(({ key, expected, record, messages }) => ({ key, expected: expectedOf(expected), text: record ?? '', messages })),
        )
        .map(async (reply) => {
          const found = await reply;
          const { version, text = null } = found.written ? { version: found.version } : (found.row ?? { version: '' });
          return { written: found.written, version, record: text, fence: 0, time: undefined };
        }),
  };
}
