import { AsyncLocalStorage } from 'node:async_hooks';
import { drizzle } from 'drizzle-orm/node-postgres';
import { Client, type PoolConfig } from 'pg';
import knexOf from 'knex';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { Locks } from 'nestjs-distributed-lock/core';
import type { PostgresListen, PostgresQuery, PostgresStoreOptions } from 'nestjs-distributed-lock/postgres';
import { postgresSchema, postgresStore } from 'nestjs-distributed-lock/postgres';
import postgres, { type Sql } from 'postgres';
import { DataSource } from 'typeorm';
import { eventually } from '../../support/eventually.js';
import { startPostgres } from '../../support/postgres-server.js';
import { changeOf, exchange, hearing, newKey, usePostgres, wakes } from './setting.js';

const setting = usePostgres();

/** What each makes of a raw statement. */
const queries: Record<string, () => Promise<PostgresQuery>> = {
  async pg() {
    const pool = setting.pool();
    return (text, values) => pool.query(text, values);
  },
  async TypeORM() {
    const source = await new DataSource({ type: 'postgres', url: setting.url }).initialize();
    setting.closes(() => source.destroy());
    return (text, values) => source.query(text, values);
  },
  async Knex() {
    const knex = knexOf({ client: 'pg', connection: setting.connection });
    setting.closes(() => knex.destroy());
    // Knex has names, and no numbers.
    return (text, values) =>
      knex.raw(
        text.replace(/\$(\d+)/g, ':v$1'),
        Object.fromEntries(values.map((value, index) => [`v${index + 1}`, value])) as Record<string, never>,
      );
  },
  async Kysely() {
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: setting.pool() }) });
    return (text, values) => db.executeQuery(CompiledQuery.raw(text, values));
  },
  'postgres.js': async () => queryOf(postgresJs()),
};

function postgresJs(): Sql {
  const { host, port, user: username, database } = setting.connection;
  const sql = postgres({ host, port, username, database, onnotice: () => undefined });
  setting.closes(() => sql.end({ timeout: 0 }));
  return sql;
}

const queryOf =
  (sql: Sql): PostgresQuery =>
  (text, values) =>
    sql.unsafe(text, values as never[]);

it('a query outside of a transaction is asked nothing that the server refuses: its log would show it', async () => {
  const pool = setting.pool();
  const refused = jest.fn();
  const table = setting.open({
    query: (text, values) =>
      pool.query(text, values).catch((error: unknown) => {
        refused(error);
        throw error;
      }),
  });
  expect(await exchange(table, {})).toMatchObject({ written: true });
  expect(refused).not.toHaveBeenCalled();
});

describe.each(Object.keys(queries))('the query of %s', (name) => {
  it('does all that a table does', async () => {
    const table = setting.open({ query: await queries[name]!() });
    const keys = Array.from({ length: 4 }, newKey);
    const key = keys[0]!;
    const first = await exchange(table, { key, record: 'one', tokens: 2, fence: 5 });
    expect(first).toMatchObject({ written: true, fence: 5 });
    const second = await exchange(table, {
      key,
      expected: first.version,
      record: `it's "two" ? :v1 $1 \\ 🔒`,
      messages: [{ inbox: 'some', text: 'one' }],
    });
    expect(second).toMatchObject({ written: true });
    expect(await exchange(table, { key, expected: first.version })).toMatchObject({ written: false, record: `it's "two" ? :v1 $1 \\ 🔒` });
    const found = await Promise.all(
      table.exchange(
        keys.map((each, i) =>
          changeOf({
            ...(i === 0 ? { expected: second.version, messages: [{ inbox: 'some', text: 'one' }] } : {}),
            ...{ key: each, record: i === 1 ? null : 'many', tokens: 1, fence: 3, isLazy: true },
          }),
        ),
      ),
    );
    expect(found).toMatchObject([{ fence: 6 }, { fence: 3 }, { fence: 3 }, { fence: 3 }]);
    expect(found.every(({ written }) => written)).toBe(true);
    expect(await exchange(table, { key, expected: undefined })).toMatchObject({ record: 'many' });
    expect((await table.doctor.checks('')).find(({ id }) => id === 'version')?.seen).toMatch(/^PostgreSQL \d+/);
  });
});

describe('a function that listens', () => {
  it('is called for each channel, brings the messages, and is ended by what it gives', async () => {
    const sql = postgresJs();
    const open = new Set<string>();
    const listen: PostgresListen = async (channel, received) => {
      const { unlisten } = await sql.listen(channel, received);
      open.add(channel);
      return async () => {
        await unlisten();
        open.delete(channel);
      };
    };
    const one = await hearing(setting, { query: queryOf(sql), listen });
    expect(one.wakeUps.isOpen).toBe(true);
    await wakes(setting.open(), one);
    const told: string[] = [];
    const leave = await one.table.bus!.listen('ops', (text) => told.push(text));
    expect([...open]).toEqual([one.inbox, 'distributed_lock:ops']);
    await setting.open().bus!.publish('ops', 'a question');
    await eventually(() => expect(told).toEqual(['a question']));
    leave();
    await eventually(() => expect([...open]).toEqual([one.inbox]));
    await one.table.close();
    await eventually(() => expect([...open]).toEqual([]));
    expect(one.warnings).toEqual([]);
  });

  it('may be sql.listen of postgres.js, which listens again by itself', async () => {
    const sql = postgresJs();
    const one = await hearing(setting, { query: queryOf(sql), listen: sql.listen });
    const backend = async (): Promise<unknown> =>
      (await setting.sql(`SELECT pid FROM pg_stat_activity WHERE query ILIKE $1 AND pid <> pg_backend_pid()`, [`listen%${one.inbox}%`]))[0]
        ?.pid;
    const before = await backend();
    await setting.sql('SELECT pg_terminate_backend($1)', [before]);
    await eventually(async () => expect([undefined, before]).not.toContain(await backend()));
    await wakes(setting.open(), one);
    expect(one.warnings).toEqual([]);
  });

  it('that fails is one warning, and waiters poll', async () => {
    const listen = (): Promise<never> => Promise.reject(Object.assign(new Error('no right to listen'), { code: '42501' }));
    const { wakeUps, warnings } = await hearing(setting, { listen });
    expect([wakeUps.state, warnings]).toEqual(['interrupted', [expect.stringContaining('no right to listen')]]);
  });
});

it('a server on a unix socket, and on no port, is reached by a URL, a pool and a query', async () => {
  const server = await startPostgres();
  setting.closes(() => server.stop());
  const { host } = server.connection;
  expect(host).toMatch(/^\//);
  const sql = postgres({ host, username: 'postgres', database: 'postgres' });
  setting.closes(() => sql.end({ timeout: 0 }));
  const pool = setting.pool({ ...server.connection });
  const tables = [
    setting.open({ url: `postgresql://postgres@localhost/postgres?host=${host}`, schema: 'create' }),
    setting.open({ pool }),
    setting.open({ query: queryOf(sql), listen: sql.listen }),
  ];
  const key = newKey();
  for (const [index, table] of tables.entries()) {
    expect(await exchange(table, { key })).toMatchObject({ written: index === 0 });
    await table.wakeUps!.open(() => undefined);
    expect(table.wakeUps!.state).toBe('woken');
  }
});

describe('a server whose version() says', () => {
  const LINUX = 'on x86_64-pc-linux-gnu, compiled by gcc (GCC) 11.4.0, 64-bit';
  it.each([
    ['CockroachDB', 'CockroachDB CCL v25.3.1 (x86_64-pc-linux-gnu, built 2025/09/02 14:01:33, go1.23.7)'],
    ['YugabyteDB', `PostgreSQL 15.12-YB-2025.1.0.0-b0 ${LINUX}`],
    ['Aurora DSQL', 'PostgreSQL 16'],
  ])('%s is refused before anything else is asked', async (name, version) => {
    const query = jest.fn(() => Promise.resolve([{ version }]));
    const locks = new Locks(postgresStore({ query }), { logger: false });
    setting.closes(() => locks.close());
    await expect(locks.acquire('order:42', { waitTimeout: Infinity })).rejects.toMatchObject({
      name: 'LockConfigError',
      message: expect.stringMatching(new RegExp(`^postgresStore: ${name} is not supported: `)),
    });
    expect(new Set(query.mock.calls.map(([text]: unknown[]) => text))).toEqual(new Set(['SELECT version() AS version']));
  });

  it.each([
    ['Aurora', `PostgreSQL 16.8 ${LINUX}`],
    ['Neon', `PostgreSQL 17.5 (6bc9ef8) ${LINUX}`],
    ['Debian', `PostgreSQL 15.14 (Debian 15.14-0+deb12u1) ${LINUX}`],
  ])('PostgreSQL is asked that once (%s)', async (_name, version) => {
    const pool = setting.pool();
    let asked = 0;
    const query: PostgresQuery = (text, values) =>
      text === 'SELECT version() AS version' ? Promise.resolve([{ version, asked: ++asked }]) : pool.query(text, values);
    const table = setting.open({ query });
    for (let round = 0; round < 3; round++) expect(await exchange(table, {})).toMatchObject({ written: true });
    expect(asked).toBe(1);
  });
});

it("Drizzle's pool is a pool, and stays open", async () => {
  const db = drizzle({ connection: setting.url });
  setting.closes(() => db.$client.end());
  const table = setting.open({ pool: db.$client });
  expect(await exchange(table, {})).toMatchObject({ written: true });
  await table.close();
  expect((await db.execute('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
});

it('a pool with the binary format of pg, which loses digits, gives exact tokens (G3)', async () => {
  const binary: PoolConfig & { binary: boolean } = { binary: true };
  const table = setting.open({ pool: setting.pool(binary) });
  // Doubles of which pg reads some as others.
  for (let fence = 1_800_000_000_000_000; fence < 2_000_000_000_000_000; fence += 7_777_777_777_777)
    expect(await exchange(table, { key: newKey(), tokens: 1, fence })).toMatchObject({ written: true, fence });
});

it('a pool with a connection whose transaction was left open grants what others see', async () => {
  const pool = setting.pool({ max: 1 });
  const client = await pool.connect();
  await client.query('BEGIN');
  client.release();
  const [one, other] = [setting.open({ pool }), setting.open()];
  const key = newKey();
  expect(await exchange(one, { key })).toMatchObject({ written: true });
  expect(await exchange(other, { key })).toMatchObject({ written: false, record: 'record' });
});

it('a query that never settles is not waited for, nor does it hold up those after it', async () => {
  const pool = setting.pool();
  let hangs = true;
  const query: PostgresQuery = (text, values) => (hangs ? new Promise(() => undefined) : pool.query(text, values));
  const table = setting.open({ query, requestTimeout: 2_000 });
  await expect(exchange(table, {})).rejects.toMatchObject({ transient: true });
  hangs = false;
  expect(await exchange(table, {})).toMatchObject({ written: true });
});

describe('where the search_path of connections differs', () => {
  const schemas = ['tenant_one', 'tenant_two'];
  beforeAll(async () => {
    for (const schema of schemas) await setting.sql(`CREATE SCHEMA ${schema}; ${postgresSchema({ table: `${schema}.tenant_lock` })}`);
  });
  const tenantsOf = async (): Promise<{ use: (schema: string) => Promise<unknown>; query: PostgresQuery }> => {
    const client = await setting.pool().connect();
    setting.closes(async () => client.release());
    return { use: (schema) => client.query(`SET search_path = ${schema}`), query: (text, values) => client.query(text, values) };
  };

  it.each([
    ['a change', 'void'],
    ['a look', undefined],
  ])('a table of another schema is a mistake (%s)', async (_name, expected) => {
    const { use, query } = await tenantsOf();
    const table = setting.open({ query, table: 'tenant_lock' });
    await use('tenant_one');
    await exchange(table, {});
    await use('tenant_two');
    await expect(exchange(table, { expected })).rejects.toMatchObject({
      name: 'LockConfigError',
      message: expect.stringMatching(/table: 'public\.tenant_lock'/),
    });
    await use('tenant_one');
    expect(await exchange(table, {})).toMatchObject({ written: true });
  });

  it('a name with its schema is one table, also when it was made again', async () => {
    const { use, query } = await tenantsOf();
    const table = setting.open({ query, table: 'tenant_one.tenant_lock' });
    const key = newKey();
    for (const schema of schemas) {
      await use(schema);
      expect(await exchange(table, { key })).toMatchObject({ written: schema === 'tenant_one' });
    }
    await setting.sql(`DROP TABLE tenant_one.tenant_lock; ${postgresSchema({ table: 'tenant_one.tenant_lock' })}`);
    expect(await exchange(table, { key })).toMatchObject({ written: true });
  });
});

it('no more than four statements of a query wait for an answer', async () => {
  const pool = setting.pool();
  let asked = 0;
  let answer = (): void => undefined;
  const hung = new Promise<void>((resolve) => (answer = resolve));
  const query: PostgresQuery = (text, values) =>
    text.startsWith('WITH') && ++asked > 0 ? hung.then(() => pool.query(text, values)) : pool.query(text, values);
  const table = setting.open({ query, requestTimeout: 2_000 });
  await Promise.all(Array.from({ length: 4 }, () => expect(exchange(table, {})).rejects.toMatchObject({ isUnsent: false })));
  await Promise.all(
    Array.from({ length: 4 }, () => expect(exchange(table, {})).rejects.toMatchObject({ transient: true, isUnsent: true })),
  );
  expect(asked).toBe(4);
  answer();
  await eventually(async () => expect(await exchange(table, {})).toMatchObject({ written: true }));
});

it('a client of a pool that never settles a statement is not waited for, and not released', async () => {
  const ended = new Set<Hung>();
  class Hung extends Client {
    override query = (): never => new Promise(() => undefined) as never;
    override end = ((...done: []) => {
      ended.add(this);
      return super.end(...done);
    }) as never;
  }
  const table = setting.open({ pool: setting.pool({ Client: Hung, max: 1 }), requestTimeout: 2_000 });
  await expect(exchange(table, {})).rejects.toMatchObject({ transient: true, isUnsent: false });
  await eventually(() => expect(ended.size).toBe(1));
});

it('a connection that never settles LISTEN is not waited for', async () => {
  class Deaf extends Client {
    override query = ((config: { text: string }) =>
      config.text.startsWith('LISTEN') ? new Promise(() => undefined) : super.query(config)) as never;
  }
  const table = setting.open({ pool: setting.pool({ Client: Deaf }), requestTimeout: 2_000 });
  await table.wakeUps!.open(() => undefined);
  expect(table.wakeUps!.state).toBe('interrupted');
});

describe('inside of a transaction of the app', () => {
  it.each([
    ['that has read nothing', 'SELECT'],
    ['that reads a snapshot', 'SELECT 1'],
    ['that has written', 'CREATE TABLE left_open ()'],
  ])('%s and was left open, a query grants nothing; the connection is ended, with one warning', async (_name, work) => {
    const pool = setting.pool({ max: 2 });
    const table = setting.open({ query: (text, values) => pool.query(text, values) });
    const warned: string[] = [];
    table.onWarning((message) => warned.push(message));
    await exchange(table, {});
    for (let round = 0; round < 2; round++) {
      const client = await pool.connect();
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query(work);
      client.release();
      const key = newKey();
      const change = exchange(table, { key, isLazy: round > 0 });
      await expect(change).rejects.toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
      await eventually(async () => expect(await exchange(table, { key })).toMatchObject({ written: true }));
      expect(await exchange(setting.open(), { key })).toMatchObject({ written: false, record: 'record' });
    }
    expect(warned).toEqual([expect.stringMatching(/a transaction that was left open/)]);
  });

  it('a query is refused', async () => {
    const client = await setting.pool().connect();
    await client.query('BEGIN');
    const table = setting.open({ query: (text, values) => client.query(text, values) });
    await expect(exchange(table, {})).rejects.toMatchObject({
      name: 'LockConfigError',
      message: expect.stringMatching(/inside a transaction/),
    });
    await client.query('SELECT 1');
    await client.query('COMMIT');
    client.release();
  });

  it('that has failed and was left open, a query does not fail for good', async () => {
    const pool = setting.pool();
    const table = setting.open({ query: (text, values) => pool.query(text, values) });
    await exchange(table, {});
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 / 0').catch(() => undefined);
    client.release();
    await expect(exchange(table, {})).rejects.toMatchObject({ name: 'StoreError', transient: true, isRefusal: false });
  });

  it('a query that finds the transaction by AsyncLocalStorage runs outside of it', async () => {
    const pool = setting.pool();
    const transaction = new AsyncLocalStorage<{ query(text: string, values: unknown[]): Promise<unknown> }>();
    const query: PostgresQuery = (text, values) => (transaction.getStore() ?? pool).query(text, values);
    const table = setting.open({ query });
    const locks = new Locks(postgresStore({ query }), { logger: false });
    const client = await pool.connect();
    await client.query('BEGIN');
    await transaction.run(client, async () => {
      const key = newKey();
      expect(await exchange(table, { key })).toMatchObject({ written: true });
      expect(await setting.sql('SELECT record FROM distributed_lock WHERE key = $1', [key])).toEqual([{ record: 'record' }]);
      const lease = await locks.acquire('outside');
      expect(await setting.sql(`SELECT record IS NOT NULL AS held FROM distributed_lock WHERE key = 'outside'`)).toEqual([{ held: true }]);
      await client.query('ROLLBACK');
      expect(await setting.sql(`SELECT record IS NOT NULL AS held FROM distributed_lock WHERE key = 'outside'`)).toEqual([{ held: true }]);
      await lease.release();
    });
    client.release();
    await locks.close();
  });
});

it.each(['repeatable read', 'serializable'])('a database whose transactions are %s: no update is lost, none fails', async (level) => {
  const options = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`;
  const url = `${setting.url}${setting.url.includes('?') ? '&' : '?'}options=${encodeURIComponent(options)}`;
  const shown = await setting.pool({ connectionString: url }).query('SHOW transaction_isolation');
  expect(shown.rows).toEqual([{ transaction_isolation: level }]);
  const tables = Array.from({ length: 4 }, () => setting.open({ url }));
  for (let round = 0; round < 5; round++) {
    const keys = [newKey(), newKey()];
    const voids = await Promise.all(tables.map((table) => Promise.all(table.exchange(keys.map((key) => changeOf({ key }))))));
    expect(voids.flat().filter(({ written }) => written).length).toBeLessThanOrEqual(2);
    const { version } = await exchange(tables[0]!, { key: keys[0], expected: undefined });
    if (version === '') continue;
    const swaps = await Promise.all(tables.map((table) => exchange(table, { key: keys[0], expected: version })));
    expect(swaps.filter(({ written }) => written).length).toBeLessThanOrEqual(1);
  }
});

describe('options', () => {
  const url = 'postgres://localhost/none';
  it.each([
    ['postgres://localhost', /must be an object/],
    [undefined, /must be an object/],
    [{}, /give exactly one of url, pool, query, not none/],
    [{ url, query: () => [] }, /not url and query/],
    [{ url: '' }, /"url" must be a URL/],
    [{ url: 7 }, /"url"/],
    [{ pool: {} }, /"pool" must be a Pool of pg/],
    [{ query: 'SELECT' }, /"query" must be a function/],
    [{ url, table: 'a.b.c' }, /"table" must be a name/],
    [{ url, table: 'x; DROP TABLE y' }, /"table"/],
    [{ url, table: '' }, /"table"/],
    [{ url, schema: 'public' }, /"schema" must be "check" or "create"/],
    [{ url, listen: 'postgres://' }, /"listen" must be an object \{ connectionString \}, which is a URL, a function, or false/],
    [{ url, listen: { connectionString: 'localhost:22810/shop' } }, /"listen"/],
    [{ url, listen: true }, /"listen"/],
    [{ url, max: 0 }, /"max"/],
    [{ url, requestTimeout: 2_000.5 }, /"requestTimeout"/],
    [{ query: () => [], prepare: true }, /"prepare" is only for "url"/],
    [{ url, tables: 'x' }, /unknown option "tables". The options are .*table/],
    [{ host: 'localhost' }, /"host" is an option of pg: write postgresStore\(\{ pool: new Pool\(\{ host \}\) \}\)/],
  ])('%j are refused', (options, message) => {
    expect(() => postgresStore(options as PostgresStoreOptions)).toThrow(
      expect.objectContaining({ name: 'LockConfigError', message: expect.stringMatching(message) }),
    );
  });

  it('that are a pool are refused', () => {
    expect(() => postgresStore(setting.pool() as unknown as PostgresStoreOptions)).toThrow(
      /a pool is passed as postgresStore\(\{ pool \}\)/,
    );
  });

  it('name the table, in its schema', async () => {
    await setting.sql('CREATE SCHEMA "Own"');
    await setting.sql(postgresSchema({ table: 'Own.order' }));
    await setting.sql(postgresSchema({ table: 'Own.order' }));
    expect(await exchange(setting.open({ table: 'Own.order' }), { key: 'own' })).toMatchObject({ written: true });
    expect(await setting.sql('SELECT key FROM "Own"."order"')).toEqual([{ key: 'own' }]);
  });

  it('a store that is closed asks for nothing more', async () => {
    const table = setting.open();
    await exchange(table, {});
    await table.close();
    await table.close();
    await expect(exchange(table, {})).rejects.toMatchObject({ transient: false, isUnsent: true });
  });
});
