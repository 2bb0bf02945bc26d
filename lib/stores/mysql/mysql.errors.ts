import { StoreError } from '../../core/model/errors.js';

/** Another session was faster, and nothing was changed: deadlock, lock wait timeout, and what a cluster has rolled back. */
const CONFLICTS = [1205, 1213, 3101];
/** What passes by itself: too many connections, out of memory or disk, shutting down, read-only, not ready, a session that was ended. */
const PASSING = [
  1021, 1037, 1038, 1040, 1041, 1047, 1053, 1114, 1158, 1159, 1160, 1161, 1203, 1226, 1290, 1317, 1792, 1836, 1927, 1969, 3024, 3032, 4031,
];
const NO_TABLE = 1146;
/** Codes of the client that no retry changes. */
const REFUSED = /^(HANDSHAKE_|AUTH_|ER_ACCESS_DENIED)/;

interface MysqlError {
  readonly errno?: number;
  readonly code?: string;
  readonly message?: string;
  readonly errors?: readonly unknown[];
}

export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(((error as StoreError).cause as MysqlError | undefined)?.errno ?? 0);
}

/**
 * What the server says of a statement is final, unless it passes by itself; a broken line is not.
 *
 * @param schema what to run if the table is missing.
 */
export function storeErrorOf(cause: unknown, { isUnsent = false, schema = '' } = {}): StoreError {
  if (cause instanceof StoreError) return cause;
  const { errno = 0, code = '' } = Object(cause) as MysqlError;
  // Numbers from 2000 to 2999 are of the client.
  const isOfServer = errno >= 1000 && !(errno >= 2000 && errno < 3000);
  const isFinal = (isOfServer && !PASSING.includes(errno) && !CONFLICTS.includes(errno)) || REFUSED.test(code);
  const advice = errno === NO_TABLE && schema !== '' ? `. Run the migration, or set schema to 'create':\n${schema}` : '';
  return new StoreError(`MySQL: ${textOf(cause)}${advice}`, { transient: !isFinal, isUnsent, cause });
}

/** That of a host with several addresses says nothing itself. */
function textOf(cause: unknown): string {
  const { message, errors, code } = Object(cause) as MysqlError;
  return message || errors?.map(textOf).join(', ') || code || String(cause);
}
