/** Postgres; MySQL and MariaDB. SQLite has no code for it. */
const MISSING = ['42P01', 'ER_NO_SUCH_TABLE'];
/** Postgres: the table, its type, or their rows in the catalogue were made by another at the same time. */
const MADE = ['42P07', '42710', '23505'];

export function isMissingTable(error: unknown): boolean {
  return chainOf(error).some(({ code, message }) => MISSING.includes(String(code)) || /^(.*: )?no such table: /.test(String(message)));
}

export function isRaceOfCreate(error: unknown): boolean {
  return chainOf(error).some(({ code }) => MADE.includes(String(code)));
}

interface DriverError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  /** Sequelize has it here. */
  readonly parent?: unknown;
}

/** The error and its causes: mappers wrap what the driver threw. */
function chainOf(error: unknown): DriverError[] {
  const chain: DriverError[] = [];
  let each = error;
  while (typeof each === 'object' && each !== null && chain.length < 5) {
    const { cause, parent } = each as DriverError;
    chain.push(each);
    each = cause ?? parent;
  }
  return chain;
}
