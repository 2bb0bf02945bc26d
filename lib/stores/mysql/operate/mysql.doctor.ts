import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { addressOf, bad, checksOf, versionFinding, warning, type Finding } from '../../../core/store/store-doctor.js';
import { HOUR } from '../../../core/util/clock.js';
import type { MysqlClient, Row } from '../mysql.client.js';
import { errnoOf, NO_TABLE } from '../mysql.errors.js';

const OLDEST = { MariaDB: '10.6', MySQL: '8.0' } as const;
const COLUMNS = ['id varbinary(2048)', 'version bigint', 'record mediumtext', 'ends_at bigint', 'fence bigint'];
const ONE_NODE = 'Let all processes write to one node, or check the fencing token at the resource.';

type Ask = (sql: string) => Promise<Row[]>;

/** Examines a MySQL or MariaDB server and the table. @param table its quoted name. */
export function mysqlChecks(client: MysqlClient, table: string): Promise<DoctorCheck[]> {
  const ask: Ask = (sql) => client.run<Row[]>(sql);
  const settings = async (...names: readonly string[]): Promise<string[]> => {
    const [row = []] = await ask(`SELECT ${names.map((name) => `@@${name}`).join(', ')}`);
    return row.map(String);
  };
  return checksOf({
    async location() {
      const [[database] = []] = await ask('SELECT DATABASE()');
      const { host = 'localhost', port = 3306, socketPath } = client.address;
      return { seen: `at ${socketPath ?? addressOf(host, port)}${typeof database === 'string' ? `/${database}` : ''}, table ${table}` };
    },
    async version() {
      const [text = ''] = await settings('version');
      const name = text.includes('MariaDB') ? 'MariaDB' : 'MySQL';
      return versionFinding(name, /^(?:5\.5\.5-)?(\d+\.\d+\.\d+)/.exec(text)?.[1] ?? text, OLDEST[name]);
    },
    async role() {
      const ofSession = ['session.tx_read_only', 'session.transaction_read_only'].map((name) => settings('global.read_only', name));
      const [ofServer, ofTransactions] = await Promise.any(ofSession);
      if (ofServer === '0' && ofTransactions === '0') return { seen: 'a primary' };
      const advice = 'It is read-only: use the address of the primary. An administrator may write in spite of read_only; apps may not.';
      return bad(ofServer === '0' ? 'transactions are read-only' : 'read_only', advice, 'nothing can be written here');
    },
    async durability() {
      const [flush, isLogged, sync] = await settings('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog');
      const seen = `innodb_flush_log_at_trx_commit ${flush}${isLogged === '1' ? `, sync_binlog ${sync}` : ', no binary log'}`;
      if (flush === '1' && (isLogged !== '1' || sync === '1')) return { seen };
      const advice = 'Set innodb_flush_log_at_trx_commit = 1 and sync_binlog = 1.';
      return bad(seen, advice, 'a crash of the host can forget locks that are held', 'correctness');
    },
    replication: () => replicationOf(ask),
    table: () => tableOf(ask, table),
  });
}

async function replicationOf(ask: Ask): Promise<Finding> {
  const status = await ask("SHOW GLOBAL STATUS WHERE Variable_name RLIKE '^(wsrep_cluster_size|rpl_semi_sync_(master|source)_status)$'");
  const variables = await ask(
    "SHOW GLOBAL VARIABLES WHERE Variable_name RLIKE '^(rpl_semi_sync_|group_replication_(group_name|single_primary_mode)$)'",
  );
  // MariaDB says master, and so did MySQL before 8.0.26.
  const values = new Map([...status, ...variables].map(([name, value]) => [String(name).toLowerCase().replace('master', 'source'), value]));
  const nodes = Number(values.get('wsrep_cluster_size') ?? 0);
  if (nodes > 0) return warning(`Galera, ${nodes} nodes`, ONE_NODE, 'several nodes of Galera can take locks at the same time');
  if (values.get('group_replication_group_name') && values.get('group_replication_single_primary_mode') === 'OFF') {
    return warning('Group Replication, several primaries', ONE_NODE, 'several nodes of the group can take locks at the same time');
  }
  // A replica that reads the binary log is a process of the server.
  const replicas = (await ask('SHOW PROCESSLIST')).filter((row) => String(row[4]).startsWith('Binlog Dump')).length;
  if (replicas === 0) {
    // Without the right PROCESS a user sees only itself.
    const grants = (await ask('SHOW GRANTS')).map(([text]) => String(text));
    const seesAll = grants.some((text) => /^GRANT (.*\bPROCESS\b.*|ALL PRIVILEGES) ON \*\.\*/.test(text));
    return seesAll ? { seen: 'no replicas' } : { state: 'unknown', seen: 'this user may not see replicas (PROCESS)' };
  }
  if (values.get('rpl_semi_sync_source_status') !== 'ON') {
    const advice = 'Use semi-synchronous replication, or check the fencing token at the resource.';
    return warning(`replicas: ${replicas}, asynchronous`, advice, 'a failover can forget a grant of this server');
  }
  // It is asynchronous from the first replica that is away for longer than the time-out.
  const [ms, point] = [values.get('rpl_semi_sync_source_timeout'), values.get('rpl_semi_sync_source_wait_point')];
  const seen = `replicas: ${replicas}, semi-synchronous for ${String(ms)} ms, ${String(point)}`;
  if (Number(ms) >= HOUR && point === 'AFTER_SYNC') return { seen: `${seen}. Promote only one that has everything` };
  const settings =
    'rpl_semi_sync_source_timeout = 4294967295 and rpl_semi_sync_source_wait_point = AFTER_SYNC (master for source on MariaDB)';
  const because = 'while a replica is away, a failover can forget a grant of this server';
  return warning(seen, `Set ${settings}, or check the fencing token at the resource.`, because);
}

async function tableOf(ask: Ask, table: string): Promise<Finding> {
  const because = 'the table is not as it must be';
  try {
    // What SHOW CREATE TABLE says depends on sql_mode and sql_quote_show_create.
    const columns = (await ask(`SHOW COLUMNS FROM ${table}`)).map(([name, type]) => `${String(name)} ${String(type)}`);
    const keys = (await ask(`SHOW INDEX FROM ${table} WHERE Key_name = 'PRIMARY'`)).map((row) => row[4]);
    const [name = '', database = 'DATABASE()'] = table.replaceAll('`', "'").split('.').reverse();
    const [row = []] = await ask(`SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = ${name} AND TABLE_SCHEMA = ${database}`);
    const engine = String(row[0]);
    if (engine !== 'InnoDB') return bad(`${table} is of ${engine}`, `ALTER TABLE ${table} ENGINE = InnoDB`, because);
    const missing = COLUMNS.filter((column) => !columns.some((each) => each.startsWith(column)));
    if (keys.join() !== 'id') missing.push('PRIMARY KEY (id)');
    if (missing.length === 0) return { seen: `${table}, ${engine}` };
    return bad(`${table} has no ${missing.join(', ')}`, 'Rename it, and run what mysqlSchema() gives.', because);
  } catch (error) {
    if (errnoOf(error) !== NO_TABLE) throw error;
    return bad(`${table} is missing`, "Run what mysqlSchema() gives, or set schema to 'create'.", because);
  }
}
