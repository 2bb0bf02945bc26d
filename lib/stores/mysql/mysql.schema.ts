import { configError } from '../../core/model/errors.js';

export const DEFAULT_TABLE = 'distributed_lock';

/** The server's clock in milliseconds. UNIX_TIMESTAMP repeats an hour when the session's zone leaves summer time. */
export const CLOCK = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000)";

/** The `CREATE TABLE` statement for a migration. It changes nothing where the table is. */
export function mysqlSchema({ table = DEFAULT_TABLE }: { table?: string } = {}): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(table)} (
  id      varbinary(2048) NOT NULL PRIMARY KEY,
  version bigint NOT NULL,
  record  mediumtext CHARACTER SET utf8mb4,
  ends_at bigint NOT NULL,
  fence   bigint NOT NULL
) ENGINE = InnoDB`;
}

/** @throws {LockConfigError} if it is no name of a table, with or without its database. */
export function quoted(table: string): string {
  if (!/^[\w$]{1,64}(\.[\w$]{1,64})?$/.test(table)) {
    throw configError('OPTION', 'mysqlStore: "table" must be the name of a table, of letters, digits, _ and $.');
  }
  return table
    .split('.')
    .map((part) => `\`${part}\``)
    .join('.');
}
