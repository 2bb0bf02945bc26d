import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { checkOf, type Finding, type StoreDoctor } from '../../../core/store/store-doctor.js';
import type { Row } from '../postgres.connection.js';
import { OLDEST } from '../postgres.report.js';
import { CLOCK, type PostgresStatements } from '../postgres.statements.js';

const FULL = 0.8;
/** Bytes of a table with few rows: more slows each look. */
const BLOATED = 64 * 1024 * 1024;
const BYTES_PER_ROW = 8192;
/** Seconds. */
const LONG = 60;
const COLUMNS = { key: 'text', version: 'bigint', record: 'text', ends_at: 'bigint', fence: 'bigint' };
const ROLE = `SELECT current_setting('synchronous_commit') AS commit, current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS pages, current_setting('server_version') AS version,
  current_setting('server_version_num')::int / 10000 AS major, pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') AS readonly, current_setting('synchronous_standby_names') AS standbys`;

/** Examines a PostgreSQL server and the table. */
export class PostgresDoctor implements StoreDoctor {
  /**
   * @param ask each statement as a transaction of its own.
   * @param isShared whether the work of the app goes over the same connections.
   */
  constructor(
    private readonly ask: (text: string, values: readonly unknown[]) => Promise<readonly Row[]>,
    private readonly statements: PostgresStatements,
    private readonly isShared: boolean,
  ) {}

  async time(): Promise<number> {
    return Number((await this.one(`SELECT ${CLOCK} AS time`))['time']);
  }

  checks(): Promise<DoctorCheck[]> {
    const server = this.one(ROLE);
    const table = this.one(TABLE, [this.statements.table]);
    for (const each of [server, table]) each.catch(() => undefined);
    const saves = { purpose: 'correctness', because: 'it is unknown whether this PostgreSQL server keeps what it has granted' } as const;
    const copies = { purpose: 'correctness', because: 'it is unknown whether this PostgreSQL server has replicas' } as const;
    return Promise.all([
      checkOf({ id: 'version', name: 'version', touches: ['G2'] }, async () => versionOf(await server)),
      checkOf({ id: 'writable', name: 'primary, and not read-only', touches: ['G1'] }, async () => writableOf(await server)),
      checkOf({ id: 'durability', name: 'what a crash can lose', touches: ['G2'], unseen: saves }, async () => durabilityOf(await server)),
      checkOf({ id: 'replication', name: 'replication', touches: ['G2'], unseen: copies }, async () => this.replicationOf(await server)),
      checkOf({ id: 'table', name: 'the table', touches: ['G1'] }, async () => this.tableOf(await table)),
      checkOf({ id: 'indexes', name: 'indexes of the table', touches: ['G9'] }, async () => indexesOf(await this.there(table))),
      checkOf({ id: 'rights', name: 'rights of this user', touches: ['G1'] }, async () => rightsOf(await this.there(table))),
      checkOf({ id: 'bloat', name: 'size of the table', touches: ['G9'] }, async () => sizeOf(await this.there(table))),
      checkOf({ id: 'snapshots', name: 'open snapshots', touches: ['G9'] }, async () => snapshotsOf(await this.one(SNAPSHOTS))),
      checkOf({ id: 'connections', name: 'connections', touches: ['G9'] }, async () =>
        connectionsOf(await this.one(CONNECTIONS), this.isShared),
      ),
    ]);
  }

  private async one(text: string, values: readonly unknown[] = []): Promise<Row> {
    return (await this.ask(text, values))[0] ?? {};
  }

  private async there(table: Promise<Row>): Promise<Row> {
    const row = await table;
    if (row['oid'] === undefined || row['oid'] === null) throw new Error('the table is missing');
    return row;
  }

  private async replicationOf({ standbys, commit }: Row): Promise<Finding> {
    const rows = await this.ask(REPLICAS, []);
    if (rows.length === 0) return { seen: 'no replicas' };
    if (rows.some((row) => row['state'] === null))
      return { state: 'unknown', seen: 'this user may not see the state of the replicas (pg_monitor)' };
    const waits = rows.filter(({ sync_state: state }) => state === 'sync' || state === 'quorum').length;
    const isWaited = standbys !== '' && waits > 0 && commit !== 'local' && commit !== 'off';
    const seen = `replicas: ${rows.length}, synchronous: ${waits}; synchronous_commit ${String(commit)}`;
    if (isWaited) return { seen: `${seen}. Promote only a synchronous one` };
    const advice = 'Set synchronous_standby_names with synchronous_commit = on, or check the fencing token at the resource.';
    return {
      state: 'warn',
      seen,
      advice,
      limits: { purpose: 'correctness', because: 'a failover can forget a grant of this PostgreSQL server' },
    };
  }

  private tableOf(row: Row): Finding {
    const { table, schema } = this.statements;
    const limits = { purpose: 'efficiency', because: 'the table is not as it must be' } as const;
    if (row['oid'] === null)
      return { state: 'bad', seen: `${table} is missing`, advice: `Run this once: ${schema.replaceAll(/\s+/g, ' ')};`, limits };
    const columns = row['columns'] as Readonly<Record<string, string>>;
    const wrong = Object.entries(COLUMNS).filter(([name, type]) => columns[name] !== type);
    const seen = `${table}, fillfactor ${Number(row['fillfactor'] ?? 100)}`;
    if (wrong.length > 0 || row['isKey'] !== true) {
      const names = [...wrong.map(([name, type]) => `${name} ${type}`), ...(row['isKey'] === true ? [] : ['PRIMARY KEY (key)'])];
      return {
        state: 'bad',
        seen: `${table} has no ${names.join(', ')}`,
        advice: 'Rename it, and run what postgresSchema() gives.',
        limits,
      };
    }
    if (row['persistence'] !== 'p') {
      const because = 'a crash of the server empties the table, which is UNLOGGED';
      return {
        state: 'warn',
        seen: `${table} is UNLOGGED`,
        advice: `ALTER TABLE ${table} SET LOGGED`,
        limits: { purpose: 'correctness', because },
      };
    }
    const elsewhere = (row['elsewhere'] as string[] | null) ?? [];
    if (elsewhere.length > 0 && !table.includes('.')) {
      const advice = `Name the schema, such as table: 'public.${table.slice(1, -1)}': another search_path leads to other locks.`;
      return { state: 'warn', seen: `${table}, also in ${elsewhere.join(', ')}`, advice };
    }
    if (Number(row['fillfactor'] ?? 100) <= 70) return { seen };
    return { state: 'warn', seen, advice: `ALTER TABLE ${table} SET (fillfactor = 50): a renewal then needs no new page.` };
  }
}

const TABLE = `SELECT t.oid::bigint AS oid, c.relpersistence AS persistence,
    (SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = 'fillfactor') AS fillfactor,
    (SELECT json_object_agg(a.attname, format_type(a.atttypid, NULL)) FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped)
      AS columns,
    coalesce((SELECT bool_or(array_length(i.indkey::int2[], 1) = 1 AND a.attname = 'key') FROM pg_index i
      JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0] WHERE i.indrelid = t.oid AND i.indisunique AND i.indpred IS NULL), false) AS "isKey",
    (SELECT json_agg(i.indexrelid::regclass::text) FROM pg_index i WHERE i.indrelid = t.oid AND NOT i.indisprimary) AS others,
    (SELECT json_agg(p.name) FROM (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (name) WHERE NOT has_table_privilege(t.oid, p.name)) AS missing,
    (SELECT json_agg(o.relnamespace::regnamespace::text) FROM pg_class o WHERE o.relname = c.relname AND o.oid <> c.oid AND o.relkind = 'r') AS elsewhere,
    pg_table_size(t.oid)::float8 AS size, greatest(c.reltuples, 0)::float8 AS rows, current_user::text AS user
  FROM (SELECT to_regclass($1::text)::oid AS oid) t LEFT JOIN pg_class c ON c.oid = t.oid`;
const REPLICAS = 'SELECT state, sync_state FROM pg_stat_replication';
/** While one is open, no row version that is newer can be removed, in any table of the database. */
const SNAPSHOTS = `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)) FILTER (WHERE backend_xmin IS NOT NULL), 0)::float8 AS oldest,
  count(*) FILTER (WHERE state IS NULL)::int AS hidden
  FROM pg_stat_activity WHERE datname = current_database() AND coalesce(backend_type, 'client backend') = 'client backend' AND pid <> pg_backend_pid()`;
const CONNECTIONS = `SELECT (SELECT sum(numbackends)::int FROM pg_stat_database) AS used,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most`;

function versionOf({ version, major }: Row): Finding {
  const seen = `PostgreSQL ${String(version)}`;
  if (Number(major) >= OLDEST) return { seen };
  return { state: 'bad', seen, advice: `Locks need ${OLDEST} or later.` };
}

function writableOf({ standby, readonly }: Row): Finding {
  const limits = { purpose: 'efficiency', because: 'nothing can be written here' } as const;
  if (standby === true)
    return { state: 'bad', seen: 'a standby', advice: 'Use the address of the primary, or target_session_attrs=read-write.', limits };
  if (readonly === 'on')
    return { state: 'bad', seen: 'read-only', advice: 'Set default_transaction_read_only = off for this role.', limits };
  return { seen: 'a primary' };
}

function durabilityOf({ commit, fsync, pages }: Row): Finding {
  const seen = `fsync ${String(fsync)}, synchronous_commit ${String(commit)}, full_page_writes ${String(pages)}`;
  const problems = [
    ...(fsync === 'off' ? ['fsync = on'] : []),
    ...(commit === 'off' ? ['synchronous_commit = on for this role'] : []),
    ...(pages === 'off' ? ['full_page_writes = on, unless the file system never tears a page'] : []),
  ];
  if (problems.length === 0) return { seen };
  const limits = { purpose: 'correctness', because: 'a crash of this PostgreSQL server can lose locks that are held' } as const;
  return { state: 'warn', seen, advice: `Set ${problems.join(', ')}.`, limits };
}

function indexesOf({ others }: Row): Finding {
  const names = (others as string[] | null) ?? [];
  if (names.length === 0) return { seen: 'only the primary key' };
  return { state: 'warn', seen: names.join(', '), advice: 'Drop them: an index on a column that changes makes each renewal write to it.' };
}

function rightsOf({ missing, user }: Row): Finding {
  const names = (missing as string[] | null) ?? [];
  if (names.length === 0) return { seen: `${String(user)} may select, insert, update and delete` };
  const seen = `${String(user)} lacks ${names.join(', ')}`;
  // DELETE is for the rows of keys that are not used any more.
  if (names.join('') === 'DELETE') return { state: 'warn', seen, advice: 'Grant it, or delete old rows yourself: the table grows.' };
  const limits = { purpose: 'efficiency', because: 'this user may not use the table' } as const;
  return { state: 'bad', seen, advice: `GRANT SELECT, INSERT, UPDATE, DELETE ON the table TO ${String(user)}`, limits };
}

function sizeOf({ size, rows }: Row): Finding {
  const seen = `${(Number(size) / 1024 / 1024).toFixed(1)} MB for about ${Number(rows).toLocaleString('en-US')} rows`;
  if (Number(size) <= BLOATED || Number(size) <= BYTES_PER_ROW * Number(rows)) return { seen };
  return {
    state: 'warn',
    seen,
    advice: 'Look for a transaction that has been open for long (pg_stat_activity), then VACUUM FULL the table.',
  };
}

function snapshotsOf({ oldest, hidden }: Row): Finding {
  const seen = `the oldest is open for ${Number(oldest).toFixed(0)} s`;
  const advice = 'Set idle_in_transaction_session_timeout, or keep locks in a database of their own on this server: a busy key gets slow.';
  if (Number(oldest) > LONG) return { state: 'warn', seen, advice };
  return Number(hidden) > 0 ? { state: 'unknown', seen: 'this user may not see those of others (pg_monitor)' } : { seen };
}

function connectionsOf({ used, most }: Row, isShared: boolean): Finding {
  const seen = `${Number(used)} of ${Number(most)}`;
  if (isShared) {
    const advice = 'Give "url" instead of "query": where the app uses all connections, renewals come too late.';
    return { state: 'warn', seen: `${seen}; locks share those of the app`, advice };
  }
  if (Number(used) <= FULL * Number(most)) return { seen };
  return {
    state: 'warn',
    seen,
    advice: 'Raise max_connections, or lower the max of the pools: a process has up to 5 connections for locks.',
  };
}
