import { createConnection, createPool, type Connection, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlSchema, mysqlStore, type MysqlStoreOptions } from 'nestjs-distributed-lock/mysql';
import { MysqlClient } from '../../lib/stores/mysql/mysql.client.js';
import { MysqlTable, quoted } from '../../lib/stores/mysql/mysql.table.js';
import { recordStore } from '../../lib/stores/records/record.store.js';
import { startMariadb, type MariadbServer } from '../support/mariadb-server.js';
import { eventually } from '../support/eventually.js';
import { examined, startLines, useChanges, type Examined } from './examined.js';

let server: MariadbServer;
let admin: Connection;
/** How it calls the two ends of replication, and the variable of read-only transactions. */
let words: typeof OF_MYSQL | typeof OF_MARIADB;
const OF_MARIADB = { source: 'master', aReplica: 'slave', readOnly: 'tx_read_only' };
const OF_MYSQL = { source: 'source', aReplica: 'replica', readOnly: 'transaction_read_only' };
beforeAll(async () => {
  server = await startMariadb({
    port: 'free',
    durable: true,
    args: ['--max-connections=20', '--log-bin', '--sync-binlog=1', '--server-id=1'],
  });
  admin = await createConnection({ ...server.connection, multipleStatements: true });
  words = JSON.stringify((await admin.query('SELECT VERSION()'))[0]).includes('MariaDB') ? OF_MARIADB : OF_MYSQL;
  await admin.query('CREATE DATABASE shop');
  await admin.query(mysqlSchema({ table: 'shop.distributed_lock' }));
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const changes = useChanges((sql) => admin.query(sql));

const urlOf = (user = 'root') => `mysql://${user}@127.0.0.1:${server.port}/shop`;
const look = (options: Partial<MysqlStoreOptions> & { url?: string } = {}): Promise<Examined> =>
  examined(mysqlStore({ url: urlOf(), requestTimeout: 5000, ...options }));

async function asGuest(grants: string): Promise<string> {
  await changes.change("CREATE USER guest@'127.0.0.1'", "DROP USER guest@'127.0.0.1'");
  await admin.query(`GRANT ${grants} ON shop.distributed_lock TO guest@'127.0.0.1'`);
  return urlOf('guest');
}

describe('the doctor of MariaDB', () => {
  it('finds nothing where all is well', () =>
    eventually(async () => {
      const { notOk, verdict, of, checks } = await look();
      expect(notOk).toEqual([]);
      expect(checks).toHaveLength(8);
      expect(of('wake-ups').seen).toBe('waiters poll, as always on this store');
      expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'yes' });
    }));

  const make = `${mysqlSchema({ table: 'shop.odd' })}; ALTER TABLE shop.odd`;
  const drop = 'DROP TABLE shop.odd';
  const global = (name: string, value: number, before: number) =>
    [`SET GLOBAL ${name} = ${value}`, `SET GLOBAL ${name} = ${before}`] as const;
  it.each([
    ['durability', 'innodb_flush_log_at_trx_commit 2, sync_binlog 1', 'yes', ...global('innodb_flush_log_at_trx_commit', 2, 1), {}],
    ['durability', 'innodb_flush_log_at_trx_commit 1, sync_binlog 0', 'yes', ...global('sync_binlog', 0, 1), {}],
    ['role', 'transactions are read-only', 'no', ...global('READ_ONLY_TRANSACTIONS', 1, 0), {}],
    ['role', 'read_only', 'no', ...global('read_only', 1, 0), { grants: 'SELECT, INSERT, UPDATE, DELETE' }],
    ['table', '`absent` is missing', 'no', 'SELECT 1', 'SELECT 1', { table: 'absent' }],
    ['table', '`odd` is of MyISAM', 'no', `${make} MODIFY id varbinary(500) NOT NULL, ENGINE = MyISAM`, drop, { table: 'odd' }],
    ['table', '`odd` has no id varbinary(2048)', 'no', `${make} MODIFY id varbinary(100)`, drop, { table: 'odd' }],
    ['table', '`odd` has no fence bigint', 'no', `${make} DROP fence`, drop, { table: 'odd' }],
    ['table', '`odd` has no PRIMARY KEY (id)', 'no', `${make} DROP PRIMARY KEY`, drop, { table: 'odd' }],
  ])('finds by the check %s: %s', async (id, seen, efficiency, statement, undo, { table, grants }: { table?: string; grants?: string }) => {
    const named = (sql: string): string => sql.replace('READ_ONLY_TRANSACTIONS', words.readOnly);
    await changes.change(named(statement), named(undo));
    const url = grants === undefined ? urlOf() : await asGuest(grants);
    const { of, verdict } = await look({ url, ...(table !== undefined && { table }) });
    expect(of(id)).toMatchObject({ state: 'bad', seen });
    expect(verdict.efficiency).toBe(efficiency);
    expect(verdict.text).toContain(`(${id})`);
  });

  it.each([
    ["sql_mode = 'ANSI'", 'sql_mode = DEFAULT'],
    ['sql_quote_show_create = 0', 'sql_quote_show_create = 1'],
  ])('knows a right table where %s', async (setting, undo) => {
    await changes.change(`SET GLOBAL ${setting}`, `SET GLOBAL ${undo}`);
    expect((await look()).of('table')).toMatchObject({ state: 'ok', seen: '`distributed_lock`, InnoDB' });
    expect((await look({ table: 'shop.distributed_lock' })).of('table')).toMatchObject({ state: 'ok' });
  });

  it('finds by the lock that it tries that a user may not write', async () => {
    const { of, verdict } = await look({ url: await asGuest('SELECT, DELETE') });
    expect(of('probe')).toMatchObject({ state: 'bad', seen: expect.stringMatching(/acquire failed: .*denied/) as string });
    expect(of('replication')).toMatchObject({ state: 'unknown' });
    expect(verdict.correctness).toBe('no');
  });

  it('finds a replica that may be behind, and one that is waited for', async () => {
    const replica = await startMariadb({ args: ['--server-id=2'] });
    changes.finally(() => replica.stop());
    const other = await createConnection({ ...replica.connection, multipleStatements: true });
    changes.finally(() => other.end());
    await changes.change(
      "CREATE USER copier@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO copier@'127.0.0.1'",
      "DROP USER copier@'127.0.0.1'",
    );
    const { source, aReplica } = words;
    if (words === OF_MYSQL) {
      // MariaDB has them built in.
      await admin.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'");
      await other.query("INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'");
      const from = `SOURCE_HOST = '127.0.0.1', SOURCE_PORT = ${server.port}, SOURCE_USER = 'copier', GET_SOURCE_PUBLIC_KEY = 1`;
      await other.query(`CHANGE REPLICATION SOURCE TO ${from}; START REPLICA`);
    } else {
      await other.query(`CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=${server.port}, MASTER_USER='copier'; START SLAVE`);
    }
    const asynchronous = { state: 'warn', seen: 'replicas: 1, asynchronous' };
    await eventually(async () => {
      const { of, verdict } = await look();
      expect(of('replication')).toMatchObject(asynchronous);
      expect(verdict.correctness).toBe('token');
    });
    await other.query(`SET GLOBAL rpl_semi_sync_${aReplica}_enabled = 1; STOP ${aReplica}; START ${aReplica}`);
    const set = (name: string, value: string, before: string) =>
      changes.change(`SET GLOBAL rpl_semi_sync_${source}_${name} = ${value}`, `SET GLOBAL rpl_semi_sync_${source}_${name} = ${before}`);
    await set('wait_point', "'AFTER_COMMIT'", "'AFTER_SYNC'");
    await set('enabled', '1', '0');
    await eventually(async () =>
      expect((await look()).of('replication')).toMatchObject({
        state: 'warn',
        seen: 'replicas: 1, semi-synchronous for 10000 ms, AFTER_COMMIT',
        advice: expect.stringContaining('rpl_semi_sync_source_timeout = 4294967295 and rpl_semi_sync_source_wait_point = AFTER_SYNC'),
      }),
    );
    await set('timeout', '4294967295', '10000');
    await set('wait_point', "'AFTER_SYNC'", "'AFTER_COMMIT'");
    await eventually(async () => expect((await look()).of('replication')).toMatchObject({ state: 'ok' }));
  });

  /** What a real server answers, changed: a cluster, an old server and a wrong clock are not to be had here. */
  const behind = (rewrite: (sql: string, rows: unknown[][]) => unknown[][]): Promise<Examined> => {
    const makePool = (): Pool => {
      const pool = createPool({ uri: urlOf(), connectionLimit: 4 });
      const getConnection = pool.getConnection.bind(pool);
      pool.getConnection = async (): Promise<PoolConnection> => {
        const connection = await getConnection();
        return new Proxy(connection, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name);
            if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value;
            return async (statement: { sql: string }) => {
              const [result, fields] = await target.query(statement as never);
              return [Array.isArray(result) ? rewrite(statement.sql, result as unknown[][]) : result, fields];
            };
          },
        });
      };
      return pool;
    };
    return examined(recordStore(new MysqlTable(new MysqlClient(makePool, 5000, '', false), quoted('distributed_lock'))));
  };

  const ofGroup = (isSingle: string) => [
    ['group_replication_group_name', 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa'],
    ['group_replication_single_primary_mode', isSingle],
  ];
  it.each([
    ['MariaDB 10.5.8', 'version', 'SELECT @@version', [['10.5.8-MariaDB']], 'bad', 'MariaDB 10.5.8'],
    ['MySQL 5.7.44', 'version', 'SELECT @@version', [['5.7.44']], 'bad', 'MySQL 5.7.44'],
    ['MySQL 8.0.36', 'version', 'SELECT @@version', [['8.0.36']], 'ok', 'MySQL 8.0.36'],
    ['Group Replication', 'replication', 'group_replication', ofGroup('OFF'), 'warn', 'Group Replication, several primaries'],
    ['Group Replication, one primary', 'replication', 'group_replication', ofGroup('ON'), 'ok', 'no replicas'],
    ['Galera', 'replication', 'wsrep_cluster', [['wsrep_cluster_size', '3']], 'warn', 'Galera, 3 nodes'],
  ])('judges %s', async (_what, id, asked, answer, state, seen) => {
    const { of } = await behind((sql, rows) => (sql.includes(asked) ? answer : rows));
    expect(of(id)).toMatchObject({ state, seen, ...(state === 'warn' && { limits: { purpose: 'correctness' } }) });
  });

  it('says at the start of an app where the table is, and no password', async () => {
    await changes.change("CREATE USER shop@'127.0.0.1' IDENTIFIED BY 's3cret'", "DROP USER shop@'127.0.0.1'");
    await admin.query("GRANT SELECT, INSERT, UPDATE, DELETE ON shop.distributed_lock TO shop@'127.0.0.1'");
    const lines = async (options: MysqlStoreOptions, namespace?: string) =>
      (await startLines(mysqlStore({ requestTimeout: 5000, ...options }), namespace)).join();
    const at = `127.0.0.1:${server.port}`;
    expect(await lines({ url: `mysql://shop:s3cret@${at}/shop` }, 'a:')).toMatch(
      RegExp(`^(MariaDB|MySQL) [\\d.]+ at ${at}/shop, table \`distributed_lock\`, namespace "a:", answers in \\d+ ms; waiters poll`),
    );
    const pool = createPool({ host: '127.0.0.1', port: server.port, user: 'shop', password: 's3cret' });
    changes.finally(() => pool.end());
    expect(await lines({ pool, table: 'shop.distributed_lock' })).toContain(` at ${at}, table \`shop\`.\`distributed_lock\`, answers in `);
  });
});
