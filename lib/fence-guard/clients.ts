import { refused, rowsOf, queriesBy, type Run } from './run.js';

/** A `Client` or `PoolClient` of `pg`. */
export interface PgClient {
  query(sql: string, params: unknown[]): Promise<{ rows: object[] }>;
}

/** The `Connection` of a client of `pg`, which emits the messages of the server. */
interface PgConnection {
  on(event: 'readyForQuery', listener: (message: { status?: string } | undefined) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

/** The state of the transactions on a connection, as its server reports it. `last`: `I`: none is open. `ends`: how often none was. */
type PgStatus = { last: string | undefined; ends: number };
const statuses = new WeakMap<PgConnection, PgStatus>();

/**
 * For `pg`: the client on which `BEGIN` was sent.
 *
 * @throws {LockConfigError} for a `Pool`: each of its queries may run on another connection. The check itself throws it outside of a transaction.
 */
export function pg(client: PgClient): Run {
  if ('totalCount' in client) throw refused('pg', 'a Pool, whose queries run on different connections: take a client with pool.connect()');
  const { connection } = client as { connection?: PgConnection };
  const ask = queriesBy((sql, params) => client.query(sql, params));
  if (typeof connection?.on !== 'function') return ask; // pg-native has no such events
  const status = statusOf(connection);
  let end: number | undefined;
  const run: Run = async (sql, params) => {
    const rows = await ask(sql, params);
    if (status.last === 'I' && !isDefinition(sql)) throw refused('pg', 'a client without an open transaction');
    end = status.ends;
    return rows;
  };
  return Object.assign(run, { isOpen: () => end === status.ends });
}

function statusOf(connection: PgConnection): PgStatus {
  const known = statuses.get(connection);
  if (known) return known;
  const status: PgStatus = { last: undefined, ends: 0 };
  connection.on('readyForQuery', (message) => {
    status.last = message?.status;
    if (status.last === 'I') status.ends++;
  });
  connection.on('end', () => status.ends++);
  statuses.set(connection, status);
  return status;
}

/** A connection of `mysql2`, with promises or callbacks. */
export interface Mysql2Connection {
  query(sql: string, params: unknown[]): unknown;
}

/** SERVER_STATUS_IN_TRANS */
const IN_TRANSACTION = 1;

/**
 * For `mysql2`: the connection on which `START TRANSACTION` was sent.
 *
 * @throws {LockConfigError} for a pool: each of its queries may run on another connection. The check itself throws it outside of a transaction.
 */
export function mysql2(connection: Mysql2Connection): Run {
  if ('getConnection' in connection)
    throw refused('mysql2', 'a pool, whose queries run on different connections: take one with getConnection()');
  const { promise } = connection as { promise?: () => Mysql2Connection };
  const promised = typeof promise === 'function' ? promise.call(connection) : connection;
  return async (sql, params) => {
    const result = await promised.query(sql, [...params]);
    // A result with rows has no status.
    const statusIn = (reply: unknown): number | undefined => (Object(reply) as { serverStatus?: number }[])[0]?.serverStatus;
    const status = statusIn(result) ?? statusIn(await promised.query('DO 0', []));
    if (!isDefinition(sql) && status !== undefined && !(status & IN_TRANSACTION))
      throw refused('mysql2', 'a connection without an open transaction');
    return rowsOf(result);
  };
}

/** A statement of `migrate` or `prune`, which needs no transaction. */
function isDefinition(sql: string): boolean {
  return /^(CREATE|DELETE) /.test(sql);
}
