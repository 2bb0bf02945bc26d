import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { addressOf, bad, checksOf, versionFinding, warning, type Finding } from '../../../core/store/store-doctor.js';
import type { PostgresClient, PostgresConnection, Row } from '../postgres.connection.js';
import type { PostgresStatements } from '../postgres.statements.js';

const OLDEST = '12';
const COLUMNS = { key: 'text', version: 'bigint', record: 'text', ends_at: 'bigint', fence: 'bigint' };
const SERVER = `SELECT current_setting('synchronous_commit') AS commit, current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS pages, current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') AS readonly, current_setting('synchronous_standby_names') AS standbys`;
const TABLE = `SELECT t.oid::bigint AS oid, c.relpersistence AS persistence,
    (SELECT json_object_agg(a.attname, format_type(a.atttypid, NULL)) FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped)
      AS columns,
    coalesce((SELECT bool_or(array_length(i.indkey::int2[], 1) = 1 AND a.attname = 'key') FROM pg_index i
      JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0] WHERE i.indrelid = t.oid AND i.indisunique AND i.indpred IS NULL), false) AS "isKey",
    (SELECT json_agg(o.relnamespace::regnamespace::text) FROM pg_class o WHERE o.relname = c.relname AND o.oid <> c.oid AND o.relkind = 'r') AS elsewhere
  FROM (SELECT to_regclass($1::text)::oid AS oid) t LEFT JOIN pg_class c ON c.oid = t.oid`;
const REPLICAS = 'SELECT state, sync_state FROM pg_stat_replication';
/** A server may be behind a pooler or a socket: then it says another address, or none. */
const LOCATION = `SELECT current_database() AS database, host(inet_server_addr()) AS host, inet_server_port() AS port,
  (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass($1::text)) AS schema`;

/**
 * Examines a PostgreSQL server and the table.
 *
 * @param ask each statement as a transaction of its own.
 * @param connection over which it asks.
 */
export function postgresChecks(
  ask: (text: string, values: readonly unknown[]) => Promise<readonly Row[]>,
  statements: PostgresStatements,
  connection: PostgresConnection,
): Promise<DoctorCheck[]> {
  const one = async (text: string, ...values: unknown[]): Promise<Row> => (await ask(text, values))[0] ?? {};
  const server = one(SERVER);
  server.catch(() => undefined);
  // Only those of the app are of any number.
  const isShared = connection.atOnce === undefined;
  return checksOf({
    location: async () => ({ seen: locationOf(statements, await one(LOCATION, statements.table), await connection.clientBeside?.()) }),
    version: async () => versionFinding('PostgreSQL', String((await server)['version']).split(' ')[0]!, OLDEST),
    async role() {
      const { standby, readonly } = await server;
      if (standby !== true && readonly !== 'on') return { seen: 'a primary' };
      const address = 'A standby is read-only: use the address of the primary, or target_session_attrs=read-write.';
      const setting = 'Transactions are read-only here: set default_transaction_read_only = off for this role.';
      return bad(standby ? 'a standby' : 'read-only', standby ? address : setting, 'nothing can be written here');
    },
    async durability() {
      const { commit, fsync, pages } = await server;
      const settings = Object.entries({ fsync, synchronous_commit: commit, full_page_writes: pages });
      const off = settings.filter(([, value]) => value === 'off');
      const seen = settings.map(([name, value]) => `${name} ${String(value)}`).join(', ');
      if (off.length === 0) return { seen };
      const advice = `Set ${off.map(([name]) => `${name} = on`).join(', ')}.`;
      return bad(seen, advice, 'a crash of this server can lose locks that are held', 'correctness');
    },
    async replication() {
      const { standbys, commit } = await server;
      const replicas = await ask(REPLICAS, []);
      if (replicas.length === 0) return { seen: 'no replicas' };
      if (replicas.some((row) => row['state'] === null))
        return { state: 'unknown', seen: 'this user may not see the state of the replicas (pg_monitor)' };
      const waits = replicas.filter(({ sync_state: state }) => state === 'sync' || state === 'quorum').length;
      const isWaited = standbys !== '' && waits > 0 && commit !== 'local' && commit !== 'off';
      const seen = `replicas: ${replicas.length}, synchronous: ${waits}; synchronous_commit ${String(commit)}`;
      if (isWaited) return { seen: `${seen}. Promote only a synchronous one` };
      const advice = 'Set synchronous_standby_names with synchronous_commit = on, or check the fencing token at the resource.';
      return warning(seen, advice, 'a failover can forget a grant of this server');
    },
    table: async () => tableOf(statements, await one(TABLE, statements.table)),
    async connections() {
      await server;
      const advice = 'Give "url" instead of "query": where the app uses all connections, renewals come too late.';
      return isShared ? warning('locks share those of the app', advice) : { seen: 'of their own' };
    },
  });
}

/** @param client of which only the address is read. Without it, the address is that by which the server knows itself. */
function locationOf({ table }: PostgresStatements, { database, schema, ...server }: Row, client: PostgresClient | undefined): string {
  const { host, port } = client ?? (server as { readonly host: string | null; readonly port: number });
  const address = host ? (host.startsWith('/') ? host : addressOf(host, port ?? 5432)) : 'localhost';
  const isQualified = table.includes('.') || typeof schema !== 'string';
  return `at ${address}/${String(database)}, table ${isQualified ? '' : `${schema}.`}${table}`;
}

function tableOf({ table, schema }: PostgresStatements, row: Row): Finding {
  const because = 'the table is not as it must be';
  if (row['oid'] === null) return bad(`${table} is missing`, `Run this once: ${schema.replaceAll(/\s+/g, ' ')};`, because);
  const { columns, isKey, persistence } = row as { readonly columns: Row; readonly isKey: boolean; readonly persistence: string };
  const wrong = Object.entries(COLUMNS).filter(([name, type]) => columns[name] !== type);
  const names = [...wrong.map((column) => column.join(' ')), ...(isKey ? [] : ['PRIMARY KEY (key)'])];
  if (names.length > 0) return bad(`${table} has no ${names.join(', ')}`, 'Rename it, and run what postgresSchema() gives.', because);
  const elsewhere = ((row['elsewhere'] ?? []) as string[]).join(', ');
  const isLost = 'a crash of the server empties the table, which is UNLOGGED';
  if (persistence !== 'p') return bad(`${table} is UNLOGGED`, `ALTER TABLE ${table} SET LOGGED`, isLost, 'correctness');
  if (elsewhere === '' || table.includes('.')) return { seen: table };
  const advice = `Name the schema, such as table: 'public.${table.slice(1, -1)}': another search_path leads to other locks.`;
  return warning(`${table}, also in ${elsewhere}`, advice);
}
