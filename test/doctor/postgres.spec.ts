import pg from 'pg';
import { postgresSchema, postgresStore, type PostgresStoreOptions } from 'nestjs-distributed-lock/postgres';
import { startPgbouncer } from '../support/pgbouncer.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { eventually } from '../support/eventually.js';
import { sharedPostgres } from '../support/shared-server.js';
import { examined, startLines, useChanges, type Examined } from './examined.js';

let server: PostgresServer;
let admin: pg.Pool;
beforeAll(async () => {
  server = await startPostgres({ durable: true, config: ['max_wal_senders = 4', 'max_connections = 20'] });
  admin = new pg.Pool({ ...server.connection, max: 1 });
  admin.on('error', () => undefined);
  await admin.query(postgresSchema());
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});
const changes = useChanges((sql) => admin.query(sql));

const look = (options: Partial<PostgresStoreOptions> = {}): Promise<Examined> =>
  examined(postgresStore({ url: server.url, requestTimeout: 5000, ...options }));
/** What the server answers, changed. */
const behind = (rewrite: (sql: string, rows: Record<string, unknown>[]) => object[]): Promise<Examined> => {
  const pool = new pg.Pool(server.connection);
  changes.finally(() => pool.end());
  const query = async (sql: string, values: unknown[]) => rewrite(sql, (await pool.query<Record<string, unknown>>(sql, values)).rows);
  return examined(postgresStore({ query, requestTimeout: 5000 }));
};
const outsiderUrl = () => server.url.replace('postgres@', 'outsider@');
/** A role with all rights that locks need, and no more. */
const OUTSIDER = 'CREATE ROLE outsider LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock TO outsider';
const withOutsider = () => changes.change(OUTSIDER, 'DROP OWNED BY outsider; DROP ROLE outsider');

describe('the doctor of Postgres', () => {
  it('finds nothing where all is well', () =>
    // A wake-up or an answer that is late on a busy machine is a finding.
    eventually(async () => {
      const { notOk, verdict, checks } = await look();
      expect(notOk).toEqual([]);
      expect(checks).toHaveLength(9);
      expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'yes' });
    }));

  const make = `${postgresSchema({ table: 'odd' })}; ALTER TABLE odd`;
  const drop = 'DROP TABLE odd';
  const commit = 'ALTER DATABASE postgres';
  const readOnly = `SET transaction_read_only = off; ${commit} RESET default_transaction_read_only`;
  const notFlushed = 'fsync on, synchronous_commit off, full_page_writes on';
  it.each([
    ['durability', notFlushed, 'yes', `${commit} SET synchronous_commit = off`, `${commit} RESET synchronous_commit`, {}],
    ['role', 'read-only', 'no', `${commit} SET default_transaction_read_only = on`, readOnly, {}],
    ['table', '"absent" is missing', 'no', 'SELECT 1', 'SELECT 1', { table: 'absent' }],
    ['table', '"odd" has no fence bigint', 'no', `${make} ALTER fence TYPE text`, drop, { table: 'odd' }],
    ['table', '"odd" has no record text', 'no', `${make} DROP record`, drop, { table: 'odd' }],
    ['table', '"odd" has no PRIMARY KEY (key)', 'no', `${make} DROP CONSTRAINT odd_pkey`, drop, { table: 'odd' }],
    ['table', '"odd" is UNLOGGED', 'yes', `${make} SET UNLOGGED`, drop, { table: 'odd' }],
  ])('finds by the check %s: %s', async (id, seen, efficiency, statement, undo, { table }: { table?: string }) => {
    await changes.change(statement, undo);
    const { of, verdict } = await look(table === undefined ? {} : { table });
    expect(of(id)).toMatchObject({ state: 'bad', seen });
    expect(verdict.efficiency).toBe(efficiency);
    expect(verdict.text).toContain(`(${id})`);
    expect(of('probe').state).toBe(efficiency === 'no' ? 'bad' : 'ok');
  });

  it.each(['SELECT', 'INSERT', 'UPDATE'])(
    'finds a role that lacks %s by the lock that is tried, in the words of the server',
    async (right) => {
      await withOutsider();
      await admin.query(`REVOKE ${right} ON distributed_lock FROM outsider`);
      const { of, verdict } = await look({ url: outsiderUrl() });
      expect(of('probe')).toMatchObject({ state: 'bad', seen: expect.stringContaining('permission denied for table') as string });
      expect(verdict.efficiency).toBe('no');
    },
  );

  it('finds an asynchronous replica, a synchronous one, and that it is one', async () => {
    const standby = await server.standby();
    changes.finally(() => standby.stop());
    await eventually(async () =>
      expect((await admin.query('SELECT FROM pg_stat_replication WHERE state = $1', ['streaming'])).rowCount).toBe(1),
    );
    const asynchronous = await look();
    expect(asynchronous.of('replication')).toMatchObject({
      state: 'warn',
      seen: 'replicas: 1, synchronous: 0; synchronous_commit on',
    });
    expect(asynchronous.verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
    const ofStandby = await examined(postgresStore({ url: standby.url, requestTimeout: 5000 }));
    expect(ofStandby.of('role')).toMatchObject({ state: 'bad', seen: 'a standby' });
    expect(ofStandby.verdict.efficiency).toBe('no');
    await withOutsider();
    const seenByOutsider = await look({ url: outsiderUrl() });
    expect(seenByOutsider.of('replication')).toMatchObject({ state: 'unknown' });
    expect(seenByOutsider.verdict.correctness).toBe('token');
    await admin.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    changes.finally(async () => {
      await admin.query('ALTER SYSTEM RESET synchronous_standby_names');
      await admin.query('SELECT pg_reload_conf()');
    });
    await admin.query('SELECT pg_reload_conf()');
    await eventually(async () => expect((await admin.query("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")).rowCount).toBe(1));
    expect((await look()).of('replication')).toMatchObject({ state: 'ok' });
    await changes.change('ALTER DATABASE postgres SET synchronous_commit = local', 'ALTER DATABASE postgres RESET synchronous_commit');
    expect((await look()).of('replication')).toMatchObject({ state: 'warn' });
  });

  it('finds a table of that name in another schema, unless the schema is named', async () => {
    await changes.change(`CREATE SCHEMA tenant; ${postgresSchema({ table: 'tenant.distributed_lock' })}`, 'DROP SCHEMA tenant CASCADE');
    expect((await look()).of('table')).toMatchObject({ state: 'warn', seen: '"distributed_lock", also in tenant' });
    expect((await look({ table: 'public.distributed_lock' })).of('table')).toMatchObject({ state: 'ok' });
  });

  it('finds a pooler through which no notification arrives', async () => {
    const pooler = await startPgbouncer({ to: server.connection });
    changes.finally(() => pooler.stop());
    const { of, verdict } = await look({ url: pooler.url, prepare: false, requestTimeout: 2000 });
    expect(of('wake-ups')).toMatchObject({ state: 'warn' });
    expect(of('probe')).toMatchObject({ state: 'ok' });
    expect(verdict.correctness).toBe('yes');
  });

  it('finds a server that is too old, and that locks share the connections of the app', async () => {
    const { of } = await behind((sql, rows) =>
      sql.includes('server_version') ? rows.map((row) => ({ ...row, version: '11.22 (Debian)' })) : rows,
    );
    expect(of('version')).toMatchObject({ state: 'bad', seen: 'PostgreSQL 11.22' });
    expect(of('connections')).toMatchObject({ state: 'warn', advice: expect.stringContaining('"url"') as string });
    expect(of('wake-ups')).toMatchObject({ state: 'ok', seen: 'waiters poll, as always on this store' });
  });

  it('finds a server that keeps nothing in a crash', async () => {
    const { url } = await sharedPostgres();
    const { of } = await examined(postgresStore({ url, schema: 'create', requestTimeout: 5000 }));
    expect(of('durability')).toMatchObject({ state: 'bad', seen: 'fsync off, synchronous_commit on, full_page_writes off' });
  });

  it('says at the start of an app where the table is, and no password', async () => {
    await changes.change("CREATE ROLE shop LOGIN PASSWORD 's3cret'; CREATE SCHEMA other", 'DROP SCHEMA other; DROP ROLE shop');
    await changes.change(postgresSchema({ table: 'other.locks' }), 'DROP TABLE other.locks');
    await admin.query('GRANT USAGE ON SCHEMA other TO shop; GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock, other.locks TO shop');
    changes.finally(() => admin.query('REVOKE ALL ON SCHEMA other FROM shop; REVOKE ALL ON distributed_lock, other.locks FROM shop'));
    const { host, port, database } = new pg.Client({ connectionString: server.url });
    const at = ` at ${host.startsWith('/') ? host : `${host}:${port}`}/${database}, table `;
    const lines = async (options: Partial<PostgresStoreOptions>, namespace?: string) =>
      (await startLines(postgresStore({ requestTimeout: 5000, ...options } as PostgresStoreOptions), namespace)).join();
    const url = server.url.replace('postgres@', 'shop:s3cret@');
    expect(await lines({ url })).toMatch(/^PostgreSQL [\d.]+ at /);
    expect(await lines({ url })).toContain(`${at}public."distributed_lock", answers in `);
    const pool = new pg.Pool({ ...server.connection, user: 'shop', password: 's3cret' });
    changes.finally(() => pool.end());
    expect(await lines({ pool, table: 'other.locks' }, 'shop:')).toContain(`${at}"other"."locks", namespace "shop:", answers in `);
    const query = async (sql: string, values: unknown[]) => (await pool.query<Record<string, unknown>>(sql, values)).rows;
    expect(await lines({ query })).toMatch(
      new RegExp(` at \\S+/${database}, table public."distributed_lock", answers in \\d+ ms; waiters poll`),
    );
  });

  it('is refused where there is no server', async () => {
    const url = 'postgres://postgres@127.0.0.1:1/none';
    await expect(examined(postgresStore({ url, requestTimeout: 5000 }))).rejects.toThrow('ECONNREFUSED');
  });
});
