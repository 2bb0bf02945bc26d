import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { checkOf, type Finding, type StoreDoctor } from '../../../core/store/store-doctor.js';
import type { MysqlClient, Row } from '../mysql.client.js';
import { errnoOf, NO_TABLE } from '../mysql.errors.js';
import { ageAdvice, nameAndVersion } from '../mysql.report.js';
import { CLOCK } from '../mysql.schema.js';

const FULL = 0.8;
const HOUR = 3_600_000;
const DENIED = [1142, 1143, 1044, 1045, 1227];
const NO_COLUMN = 1054;
/** Statements that touch no row, by the right that each needs. */
const TRIES: Readonly<Record<string, (table: string) => string>> = {
  SELECT: (table) => `SELECT id, version, record, ends_at, fence FROM ${table} WHERE 1 = 0`,
  UPDATE: (table) => `UPDATE ${table} SET version = 1, record = NULL, ends_at = 0, fence = 0 WHERE 1 = 0`,
  INSERT: (table) => `INSERT INTO ${table} (id, version, record, ends_at, fence) SELECT '', 1, NULL, 0, 0 FROM (SELECT 1) one WHERE 1 = 0`,
  DELETE: (table) => `DELETE FROM ${table} WHERE 1 = 0`,
};

/** Examines a MySQL or MariaDB server and the table. */
export class MysqlDoctor implements StoreDoctor {
  /** @param table its quoted name. */
  constructor(
    private readonly client: MysqlClient,
    private readonly table: string,
  ) {}

  async time(): Promise<number> {
    return Number((await this.ask(`SELECT ${CLOCK}`))[0]?.[0]);
  }

  checks(): Promise<DoctorCheck[]> {
    const saves = { purpose: 'correctness', because: 'it is unknown whether this server keeps what it has granted' } as const;
    const copies = { purpose: 'correctness', because: 'it is unknown whether this server has replicas' } as const;
    return Promise.all([
      checkOf({ id: 'version', name: 'version', touches: ['G2'] }, () => this.versionOf()),
      checkOf({ id: 'writable', name: 'primary, and not read-only', touches: ['G1'] }, () => this.writableOf()),
      checkOf({ id: 'durability', name: 'what a crash can lose', touches: ['G2'], unseen: saves }, () => this.durabilityOf()),
      checkOf({ id: 'replication', name: 'replication', touches: ['G2'], unseen: copies }, () => this.replicationOf()),
      checkOf({ id: 'table', name: 'the table', touches: ['G1'] }, () => this.tableOf()),
      checkOf({ id: 'rights', name: 'rights of this user', touches: ['G1'] }, () => this.rightsOf()),
      checkOf({ id: 'connections', name: 'connections', touches: ['G9'] }, () => this.connectionsOf()),
    ]);
  }

  private ask(sql: string): Promise<Row[]> {
    return this.client.run<Row[]>(sql);
  }

  /** Values as numbers; those that are words as words. */
  private async settings(...names: readonly string[]): Promise<string[]> {
    const [row = []] = await this.ask(`SELECT ${names.map((name) => `@@${name}`).join(', ')}`);
    return row.map(String);
  }

  /** Those of `SHOW GLOBAL STATUS` that are there. */
  private async status(pattern: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.ask(`SHOW GLOBAL STATUS LIKE '${pattern}'`);
    return new Map(rows.map(([name, value]) => [String(name).toLowerCase(), String(value)]));
  }

  private async versionOf(): Promise<Finding> {
    const [text = ''] = await this.settings('version');
    const { name, version } = nameAndVersion(text);
    const [advice] = ageAdvice(name, version);
    return advice === undefined ? { seen: `${name} ${version}` } : { state: 'bad', seen: `${name} ${version}`, advice };
  }

  private async writableOf(): Promise<Finding> {
    const [readOnly, ofSession] = await this.settings('global.read_only', 'session.tx_read_only').catch(() =>
      this.settings('global.read_only', 'session.transaction_read_only'),
    );
    if (readOnly === '0' && ofSession === '0') return { seen: 'a primary' };
    const advice = 'Use the address of the primary. An administrator may write in spite of read_only; apps may not.';
    return {
      state: 'bad',
      seen: readOnly === '0' ? 'transactions are read-only' : 'read_only',
      advice,
      limits: { purpose: 'efficiency', because: 'nothing can be written here' },
    };
  }

  private async durabilityOf(): Promise<Finding> {
    const [flush, isLogged, sync] = await this.settings('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog');
    const seen = `innodb_flush_log_at_trx_commit ${flush}${isLogged === '1' ? `, sync_binlog ${sync}` : ', no binary log'}`;
    const problems = [
      ...(flush === '1' ? [] : ['innodb_flush_log_at_trx_commit = 1']),
      ...(isLogged === '1' && sync !== '1' ? ['sync_binlog = 1'] : []),
    ];
    if (problems.length === 0) return { seen };
    const limits = { purpose: 'correctness', because: 'a crash of the host can forget locks that are held' } as const;
    return { state: 'warn', seen, advice: `Set ${problems.join(' and ')}.`, limits };
  }

  private async replicationOf(): Promise<Finding> {
    const cluster = await this.status('wsrep_cluster_%');
    const size = Number(cluster.get('wsrep_cluster_size') ?? 0);
    if (size > 0) {
      const seen = `Galera, ${size} nodes, ${cluster.get('wsrep_cluster_status')}`;
      const because = 'several nodes of Galera can take locks at the same time';
      const advice = 'Let all processes write to one node, or check the fencing token at the resource.';
      return { state: 'warn', seen, advice, limits: { purpose: 'correctness', because } };
    }
    // A replica that reads the binary log is a process of the server.
    const [row = []] = await this.ask("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'");
    const replicas = Number(row[0]);
    if (replicas === 0)
      return (await this.seesAll()) ? { seen: 'no replicas' } : { state: 'unknown', seen: 'this user may not see replicas (PROCESS)' };
    const semi = await this.status('rpl_semi_sync_%_status');
    if ([...semi.values()].includes('ON')) return this.semiSynchronous(replicas);
    return {
      state: 'warn',
      seen: `replicas: ${replicas}, asynchronous`,
      advice: 'Use semi-synchronous replication, or check the fencing token at the resource.',
      limits: { purpose: 'correctness', because: 'a failover can forget a grant of this server' },
    };
  }

  /** It is asynchronous from the first replica that is away for longer than the time-out. */
  private async semiSynchronous(replicas: number): Promise<Finding> {
    const rows = await this.ask("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%'");
    const [[timeout, ms] = [], [point, where] = []] = [/(master|source)_timeout$/, /(master|source)_wait_point$/].map((name) =>
      rows.find(([each]) => name.test(String(each))),
    );
    const seen = `replicas: ${replicas}, semi-synchronous for ${String(ms)} ms, ${String(where)}`;
    if (Number(ms) >= HOUR && where === 'AFTER_SYNC') return { seen: `${seen}. Promote only one that has everything` };
    const advice = `Set ${String(timeout)} = 4294967295 and ${String(point)} = AFTER_SYNC, or check the fencing token at the resource.`;
    const because = 'while a replica is away, a failover can forget a grant of this server';
    return { state: 'warn', seen, advice, limits: { purpose: 'correctness', because } };
  }

  /** Without the right PROCESS a user sees only itself. */
  private async seesAll(): Promise<boolean> {
    const grants = (await this.ask('SHOW GRANTS')).map(([text]) => String(text));
    return grants.some((text) => /^GRANT (.*\bPROCESS\b.*|ALL PRIVILEGES) ON \*\.\*/.test(text));
  }

  private async tableOf(): Promise<Finding> {
    const because = { limits: { purpose: 'efficiency', because: 'the table is not as it must be' } } as const;
    try {
      const [[, sql] = []] = await this.ask(`SHOW CREATE TABLE ${this.table}`);
      const text = String(sql);
      const engine = /ENGINE=(\w+)/.exec(text)?.[1];
      const isKey = /PRIMARY KEY \(`id`\)/.test(text);
      const advice = 'Rename it, and run what mysqlSchema() gives.';
      if (engine !== 'InnoDB')
        return { state: 'bad', seen: `${this.table} is of ${engine}`, advice: `ALTER TABLE ${this.table} ENGINE = InnoDB`, ...because };
      const missing = ['`id` varbinary(2048)', '`version` bigint', '`record` mediumtext', '`ends_at` bigint', '`fence` bigint'].filter(
        (column) => !text.includes(column),
      );
      if (missing.length > 0 || !isKey) {
        const names = [...missing.map((column) => column.replaceAll('`', '')), ...(isKey ? [] : ['PRIMARY KEY (id)'])];
        return { state: 'bad', seen: `${this.table} has no ${names.join(', ')}`, advice, ...because };
      }
      const others = [...text.matchAll(/^\s+(?:UNIQUE )?KEY `(\w+)`/gm)].map(([, name]) => name);
      if (others.length === 0) return { seen: `${this.table}, ${engine}` };
      return {
        state: 'warn',
        seen: `${this.table} has other indexes: ${others.join(', ')}`,
        advice: 'Drop them: each renewal writes to them.',
      };
    } catch (error) {
      if (errnoOf(error) !== NO_TABLE) throw error;
      const advice = "Run what mysqlSchema() gives, or set schema to 'create'.";
      return { state: 'bad', seen: `${this.table} is missing`, advice, ...because };
    }
  }

  private async rightsOf(): Promise<Finding> {
    const missing: string[] = [];
    for (const [right, sql] of Object.entries(TRIES)) {
      try {
        await this.ask(sql(this.table));
      } catch (error) {
        if (errnoOf(error) === NO_COLUMN || !DENIED.includes(errnoOf(error))) throw error;
        missing.push(right);
      }
    }
    if (missing.length === 0) return { seen: 'this user may select, insert, update and delete' };
    const seen = `this user lacks ${missing.join(', ')}`;
    // DELETE is for the rows of keys that are not used any more.
    if (missing.join('') === 'DELETE') return { state: 'warn', seen, advice: 'Grant it, or delete old rows yourself: the table grows.' };
    const limits = { purpose: 'efficiency', because: 'this user may not use the table' } as const;
    return { state: 'bad', seen, advice: `GRANT SELECT, INSERT, UPDATE, DELETE ON ${this.table} TO this user`, limits };
  }

  private async connectionsOf(): Promise<Finding> {
    const [[most = ''], status] = await Promise.all([this.settings('max_connections'), this.status('Threads_connected')]);
    const used = Number(status.get('threads_connected'));
    const seen = `${used} of ${most}`;
    if (used <= FULL * Number(most)) return { seen };
    return {
      state: 'warn',
      seen,
      advice: 'Raise max_connections, or lower the max of the pools: a process has up to 4 connections for locks.',
    };
  }
}
