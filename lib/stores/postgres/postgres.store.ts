import { renewable, type LockStore } from '../../core/store/lock-store.js';
import { recordStore } from '../records/record.store.js';
import { openTable, type PostgresStoreOptions, TABLE } from './postgres.open.js';
import { PostgresStatements } from './postgres.statements.js';

export type { PostgresPool } from './postgres.connection.js';
export type { PostgresListen, PostgresListening } from './postgres.listener.js';
export type { PostgresConnectionOptions, PostgresStoreOptions } from './postgres.open.js';
export type { PostgresQuery } from './postgres.query.js';
export { lockInTransaction, tryLockInTransaction, type TransactionLockOptions } from './postgres.transaction.js';

/**
 * Locks on PostgreSQL 12 or later. It connects with the first request. The table must be there: see {@link postgresSchema}.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function postgresStore(given: PostgresStoreOptions): LockStore {
  return renewable(() => recordStore(openTable(given)));
}

/**
 * Returns the SQL that creates the table, for a migration. It may be run again.
 *
 * @throws {LockConfigError} when the name of the table is not valid.
 */
export function postgresSchema({ table = TABLE }: { table?: string } = {}): string {
  return `${new PostgresStatements(table).schema};\n`;
}
