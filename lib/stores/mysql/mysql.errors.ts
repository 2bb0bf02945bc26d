import { messageOf, StoreError } from '../../core/model/errors.js';

/**
 * Another session was faster, and nothing was changed: a row that is newer than the snapshot (MariaDB with `innodb_snapshot_isolation`, its default from
 * 11.8 on), deadlock, lock wait timeout, and what a cluster has rolled back.
 */
const CONFLICTS = [1020, 1205, 1213, 3101];
/**
 * The server is not ready or shuts down, a connection, a session or a statement was ended, or a commit failed: in Group Replication with 1180 or 3100,
 * where several nodes write or the majority is lost.
 */
const BROKEN = [1047, 1053, 1158, 1159, 1160, 1161, 1180, 1317, 1927, 1969, 3024, 3032, 3100, 4031];
const READ_ONLY = [1290, 1792, 1836];
/**
 * Errors that no retry changes, by their SQLSTATE: not supported, wrong data, a constraint, a refused log-in, syntax, no right, no such thing; too many
 * connections of a user and too many prepared statements pass. All else passes: a proxy has numbers of its own for a server that is away, as 9001 of ProxySQL and 1105 of Vitess.
 */
const FINAL = /^(0A|2[1238]|42)/;
const TOO_MANY = [1203, 1226, 1461];
/** And by their numbers: a host, a view, a value, a table of another kind, a log-in without a state that says so. A proxy may leave out that of the others. */
const FINAL_NUMBERS = [
  1044, 1045, 1049, 1054, 1064, 1130, 1142, 1143, 1146, 1227, 1251, 1267, 1356, 1364, 1366, 1449, 1524, 1698, 1785, 1820, 1862, 3098, 3118,
  3159, 4151,
];
const PRIMARY = '. Use the address of the primary.';
export const NO_TABLE = 1146;
/** Codes of the client that no retry changes. */
const REFUSED = /^(HANDSHAKE_|AUTH_|ER_ACCESS_DENIED)/;
/** A connection that breaks in the handshake has the code of the handshake, too. */
const CUT = /ECONNRESET|EPIPE|ETIMEDOUT|socket disconnected/;

interface MysqlError {
  readonly errno?: number;
  readonly code?: string;
  readonly sqlState?: string;
}

/** The error number of the server. 0: it has sent none. */
export function errnoOf(error: unknown): number {
  return ((error as StoreError).cause as MysqlError | undefined)?.errno ?? 0;
}

export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(errnoOf(error));
}

/**
 * Makes a {@link StoreError}. An error of the server is final if it is known to be; a broken connection passes.
 *
 * @param schema what to run if the table is missing.
 */
export function storeErrorOf(cause: unknown, { isUnsent = false, schema = '' } = {}): StoreError {
  if (cause instanceof StoreError) return cause;
  const { errno = 0, code = '', sqlState = '' } = Object(cause) as MysqlError;
  // Numbers from 2000 to 2999 are of the client.
  const isOfServer = errno >= 1000 && !(errno >= 2000 && errno < 3000);
  const isRefused = REFUSED.test(code) && !CUT.test(messageOf(cause));
  const isRefusal = (isOfServer && ![...BROKEN, ...CONFLICTS].includes(errno)) || isRefused;
  const isKnown = FINAL_NUMBERS.includes(errno) || (FINAL.test(sqlState) && !TOO_MANY.includes(errno)) || isRefused;
  const isFinal = isRefusal && isKnown;
  const isMissing = errno === NO_TABLE && schema !== '';
  const advice = isMissing
    ? `. Run the SQL of mysqlSchema() once, or set schema: 'create':\n${schema}`
    : READ_ONLY.includes(errno)
      ? PRIMARY
      : '';
  // MySQL ends some of its messages with a full stop.
  const message = advice === '' ? messageOf(cause) : messageOf(cause).replace(/\.$/, '');
  return new StoreError(`MySQL: ${message}${advice}`, { transient: !isFinal, isUnsent, isRefusal, cause });
}
