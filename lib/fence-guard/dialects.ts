import { configError } from '../core/model/errors.js';
import type { Run } from './run.js';

/** The kinds of SQL that the fence guard speaks; `'mysql'` is MariaDB as well. */
export type FenceDialect = 'postgres' | 'mysql' | 'sqlite';

/** The result of a check: our token is the largest, or a larger one was seen. */
export type Outcome = 'ours' | { readonly seen: string | undefined };

/** The statements for one table. Tokens go as text and are compared in the database: a driver may return a `bigint` column as a string. */
export interface FenceTable {
  readonly ddl: string;
  /** Locks the key's row until the transaction ends, and keeps the larger token. */
  fence(run: Run, key: string, token: string): Promise<Outcome>;
  /** Locks the row against `fence`, not against `share`. */
  share(run: Run, key: string, token: string): Promise<Outcome>;
  /** Deletes the rows that no guard has written for so many seconds. */
  prune(run: Run, seconds: string): Promise<void>;
}

export function fenceTable(dialect: FenceDialect, table: string): FenceTable {
  const quote = dialect === 'mysql' ? '`' : '"';
  const quoted = quote + table.replace('.', `${quote}.${quote}`) + quote;
  return dialect === 'mysql' ? mysqlTable(quoted) : upsertTable(dialect, quoted);
}

/** Postgres from 9.5, SQLite from 3.35. */
function upsertTable(dialect: 'postgres' | 'sqlite', table: string): FenceTable {
  const isPostgres = dialect === 'postgres';
  const [first, second] = isPostgres ? ['$1', '$2'] : ['?', '?'];
  const now = isPostgres ? 'now()' : 'CURRENT_TIMESTAMP';
  const asToken = (parameter: string) => `CAST(${parameter} AS bigint)`;
  const values = `INSERT INTO ${table} AS f (lock_key, token) VALUES (${first}, ${asToken(second)}) ON CONFLICT (lock_key)`;
  const seen = `SELECT CAST(token AS text) AS token FROM ${table} WHERE lock_key = ${first}`;
  return {
    ddl: `CREATE TABLE IF NOT EXISTS ${table} (lock_key text PRIMARY KEY, token bigint NOT NULL, at ${isPostgres ? 'timestamptz' : 'text'} NOT NULL DEFAULT ${now})`,
    async fence(run, key, token) {
      const update = `DO UPDATE SET token = EXCLUDED.token, at = ${now} WHERE f.token <= EXCLUDED.token RETURNING token`;
      const written = await run(`${values} ${update}`, [key, token]);
      return written.length > 0 ? 'ours' : { seen: field((await run(seen, [key]))[0], 'token') };
    },
    share: (run, key, token) =>
      shared(run, key, token, {
        look: `SELECT ${compared(asToken(first), 'text')} FROM ${table} WHERE lock_key = ${second}${isPostgres ? ' FOR SHARE' : ''}`,
        insert: `${values} DO NOTHING`,
      }),
    async prune(run, seconds) {
      const end = isPostgres ? `now() - CAST($1 AS bigint) * interval '1 second'` : `datetime('now', '-' || ? || ' seconds')`;
      await run(`DELETE FROM ${table} WHERE at < ${end}`, [seconds]);
    },
  };
}

/**
 * MySQL and MariaDB. Their number of affected rows cannot tell the same token from a stale one, so the row is read after it is written. Keys go as
 * hexadecimal digits: clients put parameters into the text, and escape quotes by backslashes even if the server takes these as they are.
 */
function mysqlTable(table: string): FenceTable {
  const insert = `INSERT INTO ${table} (lock_key, token) VALUES (UNHEX(?), ?) ON DUPLICATE KEY UPDATE`;
  const look = `SELECT ${compared('CAST(? AS SIGNED)', 'char')} FROM ${table} WHERE lock_key = UNHEX(?)`;
  const hex = (key: string): string => Buffer.from(key).toString('hex');
  return {
    // A text column would take keys for the same that differ in case, accents or spaces at the end.
    ddl:
      `CREATE TABLE IF NOT EXISTS ${table} (lock_key varbinary(1536) NOT NULL PRIMARY KEY, token bigint NOT NULL, ` +
      'at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE = InnoDB',
    async fence(run, key, token) {
      // `at` first: it compares with the token that was there.
      await run(`${insert} at = IF(token <= VALUES(token), NOW(), at), token = GREATEST(token, VALUES(token))`, [hex(key), token]);
      return outcomeOf((await run(`${look} FOR UPDATE`, [token, hex(key)]))[0]);
    },
    share: (run, key, token) =>
      shared(run, hex(key), token, { look: `${look} LOCK IN SHARE MODE`, insert: `${insert} token = ${table}.token` }),
    async prune(run, seconds) {
      await run(`DELETE FROM ${table} WHERE at < NOW() - INTERVAL CAST(? AS SIGNED) SECOND`, [seconds]);
    },
  };
}

function compared(token: string, text: string): string {
  return `CASE WHEN token <= ${token} THEN 1 ELSE 0 END AS ours, CAST(token AS ${text}) AS token`;
}

/** The row must be there to be locked: a writer that inserted it meanwhile would not wait for this reader. */
async function shared(run: Run, key: string, token: string, sql: { look: string; insert: string }): Promise<Outcome> {
  let rows = await run(sql.look, [token, key]);
  if (rows.length === 0) {
    await run(sql.insert, [key, token]);
    rows = await run(sql.look, [token, key]);
  }
  return outcomeOf(rows[0]);
}

/** @throws {LockConfigError} */
function outcomeOf(row: object | undefined): Outcome {
  const [ours, seen] = [field(row, 'ours'), field(row, 'token')];
  if (row !== undefined && ours === undefined && seen === undefined) {
    const advice = 'give it a connection without "rowsAsArray" or "nestTables"';
    throw configError(
      'FENCE',
      `The fence guard cannot read a row: the client does not return it by the names of its columns. Advice: ${advice}.`,
    );
  }
  return Number(ours) === 1 ? 'ours' : { seen };
}

function field(row: object | undefined, name: string): string | undefined {
  const value = (row as Record<string, unknown> | undefined)?.[name];
  return value === undefined || value === null ? undefined : `${value as string}`;
}
