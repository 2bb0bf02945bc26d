/** An error of a driver. `parent`: the cause, as Sequelize names it; `meta` and `driverAdapterError`: as Prisma does, with the code in `originalCode`. */
type DriverError = Readonly<Record<string, unknown>>;

/** Codes of Postgres, and of MySQL and MariaDB. SQLite has none. */
const MISSING = ['42P01', 'ER_NO_SUCH_TABLE'];
/** Codes of Postgres: another session made the table, its type, or their rows in the catalogue at the same time. */
const MADE = ['42P07', '42710', '23505'];

export function isMissingTable(error: unknown): boolean {
  return anyCause(
    error,
    ({ code, originalCode = code, message }) => MISSING.includes(String(originalCode)) || /^(.*: )?no such table: /.test(String(message)),
  );
}

export function isRaceOfCreate(error: unknown): boolean {
  return anyCause(error, ({ code, originalCode = code }) => MADE.includes(String(originalCode)));
}

/** Whether the error or one of its causes fits: mappers wrap what the driver threw. */
function anyCause(error: unknown, fits: (error: DriverError) => boolean, depth = 5): boolean {
  if (typeof error !== 'object' || error === null || depth === 0) return false;
  const { cause, parent, meta, driverAdapterError } = error as DriverError;
  return fits(error as DriverError) || anyCause(cause ?? parent ?? meta ?? driverAdapterError, fits, depth - 1);
}
