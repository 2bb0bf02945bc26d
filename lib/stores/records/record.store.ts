import { supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { recordDrivers } from './record.drivers.js';
import { TableRecordQueue } from './record.queue.js';
import type { RecordTable } from './record.table.js';

export { TOUCH, VOID, type Change, type Found, type Message, type RecordTable, type RecordWakeUps } from './record.table.js';
export { readMessage } from './record.texts.js';
export type { CasChange, CasFound, CasRow, CasTable } from './observed/cas.table.js';
export { observedTable } from './observed/observed.table.js';

/**
 * Makes a store of any database that can change a row on condition that nobody else has changed it in the meantime. It has all kinds of locks.
 *
 * @param table how the database is asked; it is closed with the store.
 */
export function recordStore(table: RecordTable): LockStore {
  const { name, requestTimeout, bus, doctor } = table;
  return {
    name,
    requestTimeout,
    ...recordDrivers(new TableRecordQueue(table), table),
    bus,
    doctor,
    onWarning: table.onWarning && ((listener) => table.onWarning!(listener)),
    supports(feature) {
      return supportedBy(this, feature);
    },
    close: () => table.close(),
  };
}
