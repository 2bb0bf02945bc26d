import { LockLostError } from '../core/model/errors.js';

/** Codes of Postgres, and of MySQL and MariaDB. SQLite has none. */
const MISSING = ['42P01', 'ER_NO_SUCH_TABLE'];
/** Codes of Postgres: another session made the table, its type, or their rows in the catalogue at the same time. */
const MADE = ['42P07', '42710', '23505'];

/** Why a guard refused: a later holder of the key has been here. It is the `cause` of the `LockLostError`. */
export class FencedError extends Error {
  override readonly name = 'FencedError';

  constructor(
    message: string,
    /** The fencing token of the lease that was refused. */
    readonly token: number,
    /** The larger one that was seen, in decimal digits; `undefined` where it could not be read. */
    readonly seen: string | undefined,
  ) {
    super(message);
  }
}

/** The error of a lease whose token is smaller than one that was seen. */
export function fencedOff(message: string, key: string, token: number, seen: string | undefined): LockLostError {
  const cause = new FencedError(`Token ${token} is older than ${seen ?? 'one that was seen'}.`, token, seen);
  return new LockLostError(message, { key, cause });
}

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
