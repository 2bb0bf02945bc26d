import { createConnection, createPool, type Connection, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlSchema, mysqlStore, type MysqlStoreOptions } from 'nestjs-distributed-lock/mysql';
import { startMariadb, type MariadbServer } from '../support/mariadb-server.js';
import { examined, type Examined } from './examined.js';

let server: MariadbServer;
let admin: Connection;
const ends: (() => unknown)[] = [];
beforeAll(async () => {
  server = await startMariadb({
    port: 'free',
    durable: true,
    args: ['--max-connections=20', '--log-bin', '--sync-binlog=1', '--server-id=1'],
  });
  admin = await createConnection({ ...server.connection, multipleStatements: true });
  await admin.query('CREATE DATABASE shop');
  await admin.query(mysqlSchema({ table: 'shop.distributed_lock' }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const urlOf = (user = 'root') => `mysql://${user}@127.0.0.1:${server.port}/shop`;
const look = (options: Partial<MysqlStoreOptions> & { url?: string } = {}): Promise<Examined> =>
  examined(mysqlStore({ url: urlOf(), requestTimeout: 5000, ...options }));

/** Undone when the test ends. */
async function change(statement: string, undo: string): Promise<void> {
  await admin.query(statement);
  ends.push(() => admin.query(undo));
}

async function asGuest(grants: string): Promise<string> {
  await change("CREATE USER guest@'127.0.0.1'", "DROP USER guest@'127.0.0.1'");
  await admin.query(`GRANT ${grants} ON shop.distributed_lock TO guest@'127.0.0.1'`);
  return urlOf('guest');
}

describe('the doctor of MariaDB', () => {
  it('finds nothing where all is well', async () => {
    const { notOk, verdict, of, checks } = await look();
    expect(notOk).toEqual([]);
    expect(checks).toHaveLength(14);
    expect(of('wake-ups').seen).toBe('waiters poll, as always on this store');
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'yes' });
  });

  it.each([
    ['innodb_flush_log_at_trx_commit', 2, 1, 'innodb_flush_log_at_trx_commit 2, sync_binlog 1'],
    ['sync_binlog', 0, 1, 'innodb_flush_log_at_trx_commit 1, sync_binlog 0'],
  ])('finds %s = %i', async (name, value, before, seen) => {
    await change(`SET GLOBAL ${name} = ${value}`, `SET GLOBAL ${name} = ${before}`);
    const { of, verdict } = await look();
    expect(of('durability')).toMatchObject({ state: 'warn', seen });
    expect(verdict.text).toContain('because a crash of the host can forget locks that are held (durability)');
  });

  it('finds a server, or transactions, that are read-only', async () => {
    await change('SET GLOBAL read_only = 1', 'SET GLOBAL read_only = 0');
    const { of, verdict } = await look({ url: await asGuest('SELECT, INSERT, UPDATE, DELETE') });
    expect(of('writable')).toMatchObject({ state: 'bad', seen: 'read_only' });
    expect(of('probe')).toMatchObject({ state: 'bad' });
    expect(verdict.efficiency).toBe('no');
    await admin.query('SET GLOBAL read_only = 0');
    await change('SET GLOBAL tx_read_only = 1', 'SET GLOBAL tx_read_only = 0');
    expect((await look()).of('writable')).toMatchObject({ state: 'bad', seen: 'transactions are read-only' });
  });

  it('finds autocommit off', async () => {
    await change('SET GLOBAL autocommit = 0', 'SET GLOBAL autocommit = 1');
    expect((await look()).of('writable')).toMatchObject({ state: 'bad', seen: 'autocommit is off' });
  });

  it('finds a table that is missing', async () => {
    const { of } = await look({ table: 'absent' });
    expect(of('table')).toMatchObject({ state: 'bad', seen: '`absent` is missing' });
    expect(of('rights')).toMatchObject({ state: 'unknown' });
    expect(of('probe')).toMatchObject({ state: 'bad' });
  });

  it.each([
    ['another engine', 'MODIFY id varbinary(500) NOT NULL, ENGINE = Aria', 'bad', '`odd` is of Aria'],
    ['short keys', 'MODIFY id varbinary(100)', 'bad', '`odd` has no id varbinary(2048)'],
    ['a column less', 'DROP fence', 'bad', '`odd` has no fence bigint'],
    ['no primary key', 'DROP PRIMARY KEY', 'bad', '`odd` has no PRIMARY KEY (id)'],
    ['another index', 'ADD INDEX ends (ends_at)', 'warn', '`odd` has other indexes: ends'],
  ])('finds a table with %s', async (_, alteration, state, seen) => {
    await change(mysqlSchema({ table: 'shop.odd' }), 'DROP TABLE shop.odd');
    await admin.query(`ALTER TABLE shop.odd ${alteration}`);
    expect((await look({ table: 'odd' })).of('table')).toMatchObject({ state, seen });
  });

  it.each([
    ['INSERT, UPDATE, DELETE', 'SELECT', 'bad'],
    ['SELECT, UPDATE, DELETE', 'INSERT', 'bad'],
    ['SELECT, INSERT, DELETE', 'UPDATE', 'bad'],
    ['SELECT, INSERT, UPDATE', 'DELETE', 'warn'],
  ])('finds a user who may only %s', async (grants, missing, state) => {
    const { of, verdict } = await look({ url: await asGuest(grants) });
    // Who may not read a table needs that right to change some of its rows, too.
    expect(of('rights')).toMatchObject({ state, seen: expect.stringContaining(missing) as string });
    expect(of('replication')).toMatchObject({ state: 'unknown' });
    expect(verdict.correctness).toBe(state === 'bad' ? 'no' : 'token');
  });

  it('finds that there are few connections left', async () => {
    const others = await Promise.all(Array.from({ length: 15 }, () => createConnection(server.connection)));
    ends.push(() => Promise.all(others.map((other) => other.end())));
    expect((await look({ max: 2 })).of('connections')).toMatchObject({
      state: 'warn',
      seen: expect.stringMatching(/^1\d of 20$/) as string,
    });
  });

  it('finds a replica that may be behind, and one that is waited for', async () => {
    const replica = await startMariadb({ args: ['--server-id=2'] });
    ends.push(() => replica.stop());
    const other = await createConnection({ ...replica.connection, multipleStatements: true });
    ends.push(() => other.end());
    await change("CREATE USER copier@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO copier@'127.0.0.1'", "DROP USER copier@'127.0.0.1'");
    await other.query(`CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=${server.port}, MASTER_USER='copier'; START SLAVE`);
    const { of, verdict } = await until(async () => {
      const seen = await look();
      return seen.of('replication').state === 'ok' ? undefined : seen;
    });
    expect(of('replication')).toMatchObject({ state: 'warn', seen: 'replicas: 1, asynchronous' });
    expect(verdict.correctness).toBe('token');
    await other.query('SET GLOBAL rpl_semi_sync_slave_enabled = 1; STOP SLAVE; START SLAVE');
    await change('SET GLOBAL rpl_semi_sync_master_enabled = 1', 'SET GLOBAL rpl_semi_sync_master_enabled = 0');
    await until(async () => ((await look()).of('replication').seen.includes('semi-synchronous') ? true : undefined));
  });

  /** What a real server answers, changed: a cluster, an old server and a wrong clock are not to be had here. */
  const behind = (rewrite: (sql: string, rows: unknown[][]) => unknown[][]): Promise<Examined> => {
    const pool = createPool({ uri: urlOf(), connectionLimit: 4 });
    ends.push(() => pool.end());
    const getConnection = async (): Promise<PoolConnection> => {
      const connection = await pool.getConnection();
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
    return examined(mysqlStore({ pool: { getConnection } as Pool, requestTimeout: 5000 }));
  };

  it.each([
    ['10.5.8-MariaDB', 'bad', 'MariaDB 10.5.8'],
    ['5.7.44', 'bad', 'MySQL 5.7.44'],
    ['8.0.36', 'ok', 'MySQL 8.0.36'],
  ])('judges the version %s as %s', async (version, state, seen) => {
    const { of } = await behind((sql, rows) => (sql === 'SELECT @@version' ? [[version]] : rows));
    expect(of('version')).toMatchObject({ state, seen });
  });

  it('finds Galera', async () => {
    const status = [
      ['wsrep_cluster_size', '3'],
      ['wsrep_cluster_status', 'Primary'],
    ];
    const { of, verdict } = await behind((sql, rows) => (sql.includes('wsrep_cluster') ? status : rows));
    expect(of('replication')).toMatchObject({ state: 'warn', seen: 'Galera, 3 nodes, Primary' });
    expect(verdict.correctness).toBe('token');
  });

  it('finds that the clock has jumped, or is another one', async () => {
    const clock = (moved: () => number) => (sql: string, rows: unknown[][]) =>
      sql.startsWith('SELECT (TIMESTAMPDIFF') ? [[Number(rows[0]![0]) + moved()]] : rows;
    let asked = 0;
    const jumped = await behind(clock(() => (++asked > 5 ? -40_000 : 0)));
    expect(jumped.of('clock')).toMatchObject({ state: 'bad', seen: expect.stringContaining('jumped by -') as string });
    const other = await behind(clock(() => 9000));
    expect(other.of('clock')).toMatchObject({ state: 'ok' });
    expect(other.of('clock-offset')).toMatchObject({ state: 'warn' });
  });
});

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < 30; i++) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error('not seen in 30 looks');
}
