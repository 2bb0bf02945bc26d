import { configError } from '../../core/model/errors.js';

/** The database's clock in milliseconds: when it is read, not when the transaction began, which is what `now()` tells. */
const CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000)::float8';
const WHOLE_CLOCK = `floor(${CLOCK})::bigint`;
/** The first version of a row: later ones are larger, also those of a row that replaces it. */
const FIRST_VERSION = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
/** Versions follow the clock: a crash may undo a lazy change, and its version must not come again. */
const NEXT_VERSION = `greatest(t.version + 1, ${FIRST_VERSION})`;
/** The commit does not wait for the disk. It ends with the transaction. */
const LAZY = `set_config('synchronous_commit', 'off', true) AS lazy`;

const live = (row: string): string => `${row}.ends_at > ${CLOCK}`;
/** Columns after RETURNING. A function among them is called only for a row that is changed, in its transaction. */
const columns = (...given: string[]): string => given.filter((each) => each !== '').join(', ');

/** Two ways in which changes differ. */
export interface Manner {
  readonly isLazy: boolean;
  /** Whether it has messages. */
  readonly notifies: boolean;
}

/** The texts of all statements on one table. Each is a transaction of its own. */
export class PostgresStatements {
  /** Quoted for a statement. */
  readonly table: string;
  readonly schema: string;
  /** Many rows, by the numbers of their keys from 1. */
  readonly read: string;
  /** Only the version is changed. */
  readonly touch: string;
  readonly sweep: string;
  /** The clock, the number of the transaction if it has written, and that of the table. */
  private readonly seen: string;

  /** @throws {LockConfigError} when the name of the table is not valid. */
  constructor(name: string) {
    const table = (this.table = quoted(name));
    this.schema = schemaOf(table);
    this.seen = `${CLOCK} AS time, txid_current_if_assigned()::text AS xid, '${table}'::regclass::oid::text AS oid`;
    const there = `t.version::text, CASE WHEN ${live('t')} THEN t.record END AS record, t.fence::float8, ${this.seen}`;
    this.read = `SELECT c.i::int, ${there} FROM unnest($1::text[]) WITH ORDINALITY AS c (key, i) LEFT JOIN ${table} t ON t.key = c.key`;
    this.touch = `UPDATE ${table} t SET version = ${NEXT_VERSION} WHERE key = $1::text RETURNING ${columns(there, LAZY)}`;
    this.sweep = `DELETE FROM ${table} WHERE key IN
      (SELECT key FROM ${table} WHERE ends_at < ${CLOCK} - $1::float8 LIMIT $2::int FOR UPDATE SKIP LOCKED) RETURNING 1`;
  }

  /** Keys in the order of their bytes, from one on or behind it. */
  page(isFirst: boolean): string {
    return `SELECT key FROM ${this.table} WHERE key ${isFirst ? '>=' : '>'} $1::text AND ends_at > ${CLOCK} - $2::float8 ORDER BY key LIMIT $3::int`;
  }

  /** Changes a row that has this version. Values: key, record, end, tokens, fence, notBefore, version, and the messages as JSON. */
  swap({ isLazy, notifies }: Manner): string {
    return `UPDATE ${this.table} t SET version = ${NEXT_VERSION}, record = $2::text, ends_at = greatest($3::bigint, ${WHOLE_CLOCK}),
        fence = greatest(fence + $4::bigint, $5::bigint)
      WHERE key = $1::text AND $6::float8 <= ${CLOCK} AND version = $7::bigint
      RETURNING ${columns(`version::text, fence::float8, ${this.seen}`, isLazy ? LAZY : '', notifies ? notifying('$8') : '')}`;
  }

  /**
   * Makes a row, or changes one that has ended; any other is only read. Values as those of {@link swap}, without the version. ON CONFLICT locks the row,
   * which is a write, even if it does not change it: so it comes after a condition that finds a key that is taken.
   */
  create({ isLazy, notifies }: Manner): string {
    const { table } = this;
    return `WITH w AS (INSERT INTO ${table} AS t (key, version, record, ends_at, fence)
        SELECT $1::text, ${FIRST_VERSION}, $2::text, greatest($3::bigint, ${WHOLE_CLOCK}), greatest($4::bigint, $5::bigint)
        WHERE $6::float8 <= ${CLOCK} AND NOT EXISTS (SELECT FROM ${table} o WHERE o.key = $1::text AND ${live('o')})
        ON CONFLICT (key) DO UPDATE SET version = ${NEXT_VERSION}, record = excluded.record, ends_at = excluded.ends_at,
          fence = greatest(t.fence + $4::bigint, $5::bigint) WHERE t.ends_at <= ${CLOCK}
        RETURNING ${columns('version, fence', isLazy ? LAZY : '', notifies ? notifying('$7') : '')})
      SELECT w.version IS NOT NULL AS written, coalesce(w.version, t.version)::text AS version, coalesce(w.fence, t.fence)::float8 AS fence,
        CASE WHEN ${live('t')} THEN t.record END AS record, ${this.seen}
      FROM (SELECT 1) one LEFT JOIN w ON true LEFT JOIN ${table} t ON t.key = $1::text`;
  }

  /**
   * Makes any number of changes in one commit, and returns the made ones by their numbers from 1. Values: arrays of keys, records, ends, tokens, fences,
   * notBefores, versions (null: nothing there, or ended), and of messages as JSON. It skips rows that another statement is changing, and inserts new ones
   * in the order of their keys, so that no two of these wait for each other.
   */
  many({ isLazy, notifies }: Manner): string {
    const { table } = this;
    const lazy = isLazy ? LAZY : '';
    const isPossible = `c.not_before <= ${CLOCK}`;
    return `WITH c AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::float8[], $7::bigint[]
        ${notifies ? ', $8::text[]' : ''}) WITH ORDINALITY AS c (key, record, ends_at, tokens, fence, not_before, version ${notifies ? ', messages' : ''}, i)),
      l AS MATERIALIZED (SELECT c.* FROM c JOIN ${table} t ON t.key = c.key
        WHERE ${isPossible} AND (t.version = c.version OR (c.version IS NULL AND t.ends_at <= ${CLOCK})) FOR NO KEY UPDATE OF t SKIP LOCKED),
      u AS (UPDATE ${table} t SET version = ${NEXT_VERSION}, record = l.record, ends_at = greatest(l.ends_at, ${WHOLE_CLOCK}),
          fence = greatest(t.fence + l.tokens, l.fence) FROM l WHERE t.key = l.key
        RETURNING ${columns('l.i, t.version, t.fence', lazy, notifies ? notifying('l.messages') : '')}),
      n AS (INSERT INTO ${table} AS t (key, version, record, ends_at, fence)
        SELECT c.key, ${FIRST_VERSION}, c.record, greatest(c.ends_at, ${WHOLE_CLOCK}), greatest(c.tokens, c.fence) FROM c
        WHERE ${isPossible} AND c.version IS NULL AND NOT EXISTS (SELECT FROM ${table} o WHERE o.key = c.key)
        ORDER BY c.key COLLATE "C" ON CONFLICT (key) DO NOTHING RETURNING ${columns('key, version, fence', lazy)})
      SELECT m.i::int, m.version::text, m.fence::float8, ${this.seen}
      FROM (SELECT i, version, fence FROM u UNION ALL SELECT c.i, n.version, n.fence FROM n JOIN c ON c.key = n.key) m`;
  }
}

/** The statement that is run before the first use. It may be run again. */
function schemaOf(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  key text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  record text,
  ends_at bigint NOT NULL,
  fence bigint NOT NULL
) WITH (fillfactor = 50)`;
}

function notifying(messages: string): string {
  return `(SELECT count(pg_notify(m ->> 0, m ->> 1)::text) FROM json_array_elements(${messages}::text::json) AS m) AS notified`;
}

function quoted(name: string): string {
  const parts = name.split('.');
  if (parts.length > 2 || !parts.every((part) => /^[A-Za-z_][\w$]{0,62}$/.test(part)))
    throw configError('OPTION', 'postgresStore: "table" must be a name, or a schema and a name such as "locks.distributed_lock".');
  return parts.map((part) => `"${part}"`).join('.');
}
