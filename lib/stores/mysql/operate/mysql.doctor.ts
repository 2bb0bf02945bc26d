import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { bad, checkOf, warning, type Finding } from '../../../core/store/store-doctor.js';
import { HOUR } from '../../../core/util/clock.js';
import type { MysqlClient, Row } from '../mysql.client.js';
import { errnoOf, NO_TABLE } from '../mysql.errors.js';

const OLDEST = { MariaDB: '10.6', MySQL: '8.0' } as const;
const COLUMNS = ['`id` varbinary(2048)', '`version` bigint', '`record` mediumtext', '`ends_at` bigint', '`fence` bigint'];

/** Examines a MySQL or MariaDB server and the table. @param table its quoted name. */
export function mysqlChecks(client: MysqlClient, table: string): Promise<DoctorCheck[]> {
  const ask = (sql: string): Promise<Row[]> => client.run<Row[]>(sql);
  const settings = async (...names: readonly string[]): Promise<string[]> => {
    const [row = []] = await ask(`SELECT ${names.map((name) => `@@${name}`).join(', ')}`);
    return row.map(String);
  };
  const saves = { purpose: 'correctness', because: 'it is unknown whether this server keeps what it has granted' } as const;
  const copies = { purpose: 'correctness', because: 'it is unknown whether this server has replicas' } as const;
  return Promise.all([
    checkOf({ id: 'version', name: 'version', touches: ['G2'] }, async () => versionOf((await settings('version'))[0] ?? '')),
    checkOf({ id: 'role', name: 'primary, and not read-only', touches: ['G1'] }, async () => {
      const [readOnly, ofSession] = await settings('global.read_only', 'session.tx_read_only').catch(() =>
        settings('global.read_only', 'session.transaction_read_only'),
      );
      if (readOnly === '0' && ofSession === '0') return { seen: 'a primary' };
      const advice = 'It is read-only: use the address of the primary. An administrator may write in spite of read_only; apps may not.';
      return bad(readOnly === '0' ? 'transactions are read-only' : 'read_only', advice, 'nothing can be written here');
    }),
    checkOf({ id: 'durability', name: 'what a crash can lose', touches: ['G2'], unseen: saves }, async () => {
      const [flush, isLogged, sync] = await settings('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog');
      const seen = `innodb_flush_log_at_trx_commit ${flush}${isLogged === '1' ? `, sync_binlog ${sync}` : ', no binary log'}`;
      const problems = [
        ...(flush === '1' ? [] : ['innodb_flush_log_at_trx_commit = 1']),
        ...(isLogged === '1' && sync !== '1' ? ['sync_binlog = 1'] : []),
      ];
      if (problems.length === 0) return { seen };
      return bad(seen, `Set ${problems.join(' and ')}.`, 'a crash of the host can forget locks that are held', 'correctness');
    }),
    checkOf({ id: 'replication', name: 'replication', touches: ['G2'], unseen: copies }, () => replicationOf(ask)),
    checkOf({ id: 'table', name: 'the table', touches: ['G1'] }, () => tableOf(ask, table)),
  ]);
}

function versionOf(text: string): Finding {
  const name = text.includes('MariaDB') ? 'MariaDB' : 'MySQL';
  const version = /^(?:5\.5\.5-)?(\d+\.\d+\.\d+)/.exec(text)?.[1] ?? text;
  const seen = `${name} ${version}`;
  const isTooOld = version.localeCompare(OLDEST[name], 'en', { numeric: true }) < 0;
  return isTooOld ? bad(seen, `Locks need ${OLDEST[name]} or later.`, 'this server is too old') : { seen };
}

type Ask = (sql: string) => Promise<Row[]>;

async function replicationOf(ask: Ask): Promise<Finding> {
  const status = async (pattern: string): Promise<ReadonlyMap<string, string>> =>
    new Map((await ask(`SHOW GLOBAL STATUS LIKE '${pattern}'`)).map(([name, value]) => [String(name).toLowerCase(), String(value)]));
  const cluster = await status('wsrep_cluster_%');
  const size = Number(cluster.get('wsrep_cluster_size') ?? 0);
  if (size > 0) {
    const advice = 'Let all processes write to one node, or check the fencing token at the resource.';
    const because = 'several nodes of Galera can take locks at the same time';
    return warning(`Galera, ${size} nodes, ${cluster.get('wsrep_cluster_status')}`, advice, because);
  }
  // A replica that reads the binary log is a process of the server.
  const [row = []] = await ask("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'");
  const replicas = Number(row[0]);
  if (replicas === 0) {
    // Without the right PROCESS a user sees only itself.
    const grants = (await ask('SHOW GRANTS')).map(([text]) => String(text));
    const seesAll = grants.some((text) => /^GRANT (.*\bPROCESS\b.*|ALL PRIVILEGES) ON \*\.\*/.test(text));
    return seesAll ? { seen: 'no replicas' } : { state: 'unknown', seen: 'this user may not see replicas (PROCESS)' };
  }
  const semi = await status('rpl_semi_sync_%_status');
  if ([...semi.values()].includes('ON')) return semiSynchronous(ask, replicas);
  const advice = 'Use semi-synchronous replication, or check the fencing token at the resource.';
  return warning(`replicas: ${replicas}, asynchronous`, advice, 'a failover can forget a grant of this server');
}

/** It is asynchronous from the first replica that is away for longer than the time-out. */
async function semiSynchronous(ask: Ask, replicas: number): Promise<Finding> {
  const rows = await ask("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%'");
  const [[timeout, ms] = [], [point, where] = []] = [/(master|source)_timeout$/, /(master|source)_wait_point$/].map((name) =>
    rows.find(([each]) => name.test(String(each))),
  );
  const seen = `replicas: ${replicas}, semi-synchronous for ${String(ms)} ms, ${String(where)}`;
  if (Number(ms) >= HOUR && where === 'AFTER_SYNC') return { seen: `${seen}. Promote only one that has everything` };
  const advice = `Set ${String(timeout)} = 4294967295 and ${String(point)} = AFTER_SYNC, or check the fencing token at the resource.`;
  return warning(seen, advice, 'while a replica is away, a failover can forget a grant of this server');
}

async function tableOf(ask: Ask, table: string): Promise<Finding> {
  const because = 'the table is not as it must be';
  try {
    const [[, sql] = []] = await ask(`SHOW CREATE TABLE ${table}`);
    const text = String(sql);
    const engine = /ENGINE=(\w+)/.exec(text)?.[1];
    if (engine !== 'InnoDB') return bad(`${table} is of ${engine}`, `ALTER TABLE ${table} ENGINE = InnoDB`, because);
    const missing = COLUMNS.filter((column) => !text.includes(column)).map((column) => column.replaceAll('`', ''));
    if (!/PRIMARY KEY \(`id`\)/.test(text)) missing.push('PRIMARY KEY (id)');
    if (missing.length === 0) return { seen: `${table}, ${engine}` };
    return bad(`${table} has no ${missing.join(', ')}`, 'Rename it, and run what mysqlSchema() gives.', because);
  } catch (error) {
    if (errnoOf(error) !== NO_TABLE) throw error;
    return bad(`${table} is missing`, "Run what mysqlSchema() gives, or set schema to 'create'.", because);
  }
}
