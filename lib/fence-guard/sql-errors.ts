/** Codes of Postgres, and of MySQL and MariaDB. SQLite has none. */
const MISSING = ['42P01', 'ER_NO_SUCH_TABLE'];
/** Codes of Postgres: another session made the table, its type, or their rows in the catalogue at the same time. */
const MADE = ['42P07', '42710', '23505'];

export function isMissingTable(error: unknown): boolean {
  return anyCause(error, (code, message) => MISSING.includes(code) || /^(.*: )?no such table: /.test(message));
}

export function isRaceOfCreate(error: unknown): boolean {
  return anyCause(error, (code) => MADE.includes(code));
}

/** Whether the error or one of its causes fits: mappers wrap what the driver threw. Sequelize has it in `parent`, Prisma in `meta` or in `driverAdapterError`. */
function anyCause(error: unknown, fits: (code: string, message: string) => boolean, depth = 5): boolean {
  if (typeof error !== 'object' || error === null || depth === 0) return false;
  const { code, originalCode = code, message, cause, parent, meta, driverAdapterError } = error as Record<string, unknown>;
  return fits(String(originalCode), String(message)) || anyCause(cause ?? parent ?? meta ?? driverAdapterError, fits, depth - 1);
}
