import { supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { RecordLatchDriver } from './latch.driver.js';
import { RecordLeaseDriver } from './lease.driver.js';
import { LeaseSteps } from './lease.steps.js';
import { TableRecordQueue, type RecordQueue } from './record.queue.js';
import { RecordInspector } from './operate/record.inspector.js';
import type { RecordTable } from './record.table.js';

export { TOUCH, VOID, type Change, type Found, type Message, type RecordTable, type RecordWakeUps } from './record.table.js';
export { readMessage } from './record.texts.js';

/**
 * All kinds of locks on a table of records: a store is made of any database that can change a row only where nobody else has changed it in the
 * meantime.
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

type Drivers = Required<Pick<LockStore, 'mutex' | 'readWriteLock' | 'semaphore' | 'countDownLatch' | 'inspector'>>;

/** The drivers of all kinds of locks over one recordQueue. */
export function recordDrivers(recordQueue: RecordQueue, table: Pick<RecordTable, 'wakeUps' | 'keys' | 'note'>): Drivers {
  const { wakeUps } = table;
  const driver = (steps: LeaseSteps): RecordLeaseDriver => new RecordLeaseDriver(recordQueue, steps, wakeUps);
  return {
    mutex: driver(new LeaseSteps('mutex')),
    readWriteLock: {
      read: driver(new LeaseSteps('read/write lock', 'read')),
      write: driver(new LeaseSteps('read/write lock', 'write')),
    },
    semaphore: driver(new LeaseSteps('semaphore')),
    countDownLatch: new RecordLatchDriver(recordQueue, wakeUps),
    inspector: new RecordInspector(recordQueue, table),
  };
}
