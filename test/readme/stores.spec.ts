// The stores that the documents show, on real servers where they lock.
import { NestFactory } from '@nestjs/core';
import { drizzle } from 'drizzle-orm/node-postgres';
import knexOf from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import { createPool } from 'mysql2/promise';
import { Locks, QuorumError, type LockStore, type StoreFeature } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mysqlSchema, mysqlStore } from 'nestjs-distributed-lock/mysql';
import { lockInTransaction, postgresSchema } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import postgresJs from 'postgres';
import { DataSource } from 'typeorm';
import { rejection } from '../support/rejection.js';
import { eventually } from '../support/eventually.js';
import { blocksOf, read } from '../support/markdown.js';
import type { PostgresConnection } from '../support/postgres-server.js';
import { startRedis } from '../support/redis-server.js';
import { sharedMariadb, sharedPostgres } from '../support/shared-server.js';
import config from './cli-config.js';
import { ofThreeMembers } from './etcd.js';
import { byDirectory, byUrl as byMysqlUrl, byPool as byMysqlPool } from './mysql-and-file.js';
import * as postgres from './postgres.js';
import { ofRedisAndPostgres, ofThreeServers } from './quorum.js';
import * as zookeeper from './zookeeper.js';

const directory = mkdtempSync(join(tmpdir(), 'stores-'));
const { DATABASE_URL } = process.env;
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => {
  if (DATABASE_URL === undefined) delete process.env.DATABASE_URL;
  else process.env.DATABASE_URL = DATABASE_URL;
});

/** It keeps a second caller out, and closes. */
async function expectLocks(store: LockStore): Promise<void> {
  const locks = new Locks(store, { logger: false });
  await using lease = await locks.acquire('order:42', { keyTimeout: 60_000 });
  expect(lease.fencingToken).toBeGreaterThan(0);
  expect(await locks.tryAcquire('order:42', { reentrant: false })).toBeNull();
  await lease.release();
  await locks.close();
}

/** What the first cell of a row of the table of docs/choosing-a-store.md means. */
const ROWS: Record<string, readonly StoreFeature[]> = {
  'mutex, read/write lock, multi-lock, leader election': ['mutex', 'readWriteLock', 'multiLock', 'leaderElection'],
  'semaphore, latch': ['semaphore', 'countDownLatch'],
  'inspect, list, free by force': ['inspect'],
  'waiters are woken': ['wakeUps'],
};
const STORES: Record<string, () => LockStore> = {
  '/redis': () => redisStore({ url: 'redis://127.0.0.1:1' }),
  '/postgres': () => postgres.byUrl(),
  '/mysql': () => mysqlStore({ url: 'mysql://127.0.0.1:1/shop' }),
  '/etcd': () => ofThreeMembers(),
  '/zookeeper': () => zookeeper.ofThreeMembers(),
  '/quorum': () => ofThreeServers(),
  '/file': () => fileStore({ directory }),
  '/memory': () => memoryStore(),
};

describe('the table of docs/choosing-a-store.md', () => {
  const lines = read('docs/choosing-a-store.md').split('\n');
  const start = lines.findIndex((line) => line.startsWith('| entry |'));
  const [entries, ...others] = lines.slice(start, lines.indexOf('', start)).map(cellsOf);
  const rows = others.filter(([name]) => Object.hasOwn(ROWS, name!));

  it('has a column for each store, and a row for each feature', () => {
    expect(entries!.slice(1)).toEqual(Object.keys(STORES).map((entry) => `\`${entry}\``));
    expect(rows.map(([name]) => name).sort()).toEqual(Object.keys(ROWS).sort());
  });

  it.each(Object.keys(STORES))('says what the store of %s supports', async (entry) => {
    const store = STORES[entry]!();
    const column = Object.keys(STORES).indexOf(entry) + 1;
    const said = Object.fromEntries(rows.map((cells) => [cells[0], cells[column]!.startsWith('yes')]));
    const seen = Object.fromEntries(Object.entries(ROWS).map(([name, features]) => [name, features.every((each) => store.supports(each))]));
    expect(seen).toEqual(said);
    await store.close();
  });
});

describe('docs/postgres.md', () => {
  let url: string;
  let connection: PostgresConnection;
  let pool: pg.Pool;
  beforeAll(async () => {
    ({ url, connection } = await sharedPostgres());
    pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => undefined);
    const source = await new DataSource({ type: 'postgres', url, migrations: [postgres.DistributedLock1700000000000] }).initialize();
    await source.runMigrations();
    await source.undoLastMigration();
    await source.runMigrations();
    await source.destroy();
  });
  afterAll(() => pool.end());

  it('shows the table as it is', () => {
    expect(blocksOf('docs/postgres.md').map(({ text }) => text)).toContain(postgresSchema().trim());
  });

  it('makes stores of what an app has', async () => {
    process.env.DATABASE_URL = url;
    await expectLocks(postgres.byUrl());
    await expectLocks(postgres.byPool(pool));
    await expectLocks(postgres.byDrizzle(drizzle({ client: pool })));
    await expectLocks(postgres.byKysely(new Kysely({ dialect: new PostgresDialect({ pool }) })));
    const knex = knexOf({ client: 'pg', connection: url });
    await postgres.knexMigration()(knex);
    await expectLocks(postgres.byKnex(knex));
    await knex.destroy();
    const { host, port, user: username, database } = connection;
    const sql = postgresJs({ host, port, username, database });
    await expectLocks(postgres.byPostgresJs(sql));
    await sql.end();
  });

  it('takes a DATABASE_URL as Prisma writes it', async () => {
    process.env.DATABASE_URL = `${url}${url.includes('?') ? '&' : '?'}schema=public&connection_limit=5`;
    await expectLocks(postgres.byUrl());
  });

  it('gives Nest a store beside TypeORM, or one that asks by its data source', async () => {
    const app = await NestFactory.createApplicationContext(postgres.appOf(url) as never, { logger: false });
    await expectLocks(app.get(Locks).store);
    await expectLocks(postgres.byQuery(app.get(DataSource), url));
    await app.close();
  });

  it('locks in a transaction, until it ends', async () => {
    await pool.query('CREATE TABLE orders (id text, paid boolean)');
    await pool.query("INSERT INTO orders VALUES ('42', false)");
    await postgres.inTransaction(pool, '42');
    expect((await pool.query('SELECT paid FROM orders')).rows).toEqual([{ paid: true }]);
    await pool.query('CREATE MATERIALIZED VIEW report AS SELECT 1');
    const source = await new DataSource({ type: 'postgres', url }).initialize();
    expect(await postgres.inTypeorm(source)).toBe(true);
    const client = await pool.connect();
    await client.query('BEGIN');
    await lockInTransaction((text, values) => client.query(text, values), 'report');
    expect(await postgres.inTypeorm(source)).toBe(false);
    await client.query('ROLLBACK');
    client.release();
    await source.destroy();
  });
});

describe('docs/mysql.md', () => {
  it('is right about its table, a URL and a pool', async () => {
    const { url } = await sharedMariadb();
    process.env.DATABASE_URL = url;
    const pool = createPool(url);
    await pool.query(mysqlSchema());
    await expectLocks(byMysqlUrl());
    await expectLocks(byMysqlPool(pool));
    await pool.query('DROP TABLE distributed_lock');
    await pool.end();
    expect(blocksOf('docs/mysql.md').map(({ text }) => text.trim())).toContain(mysqlSchema());
  });
});

it('docs/file.md is right about its directory', async () => {
  process.env.LOCK_DIRECTORY = directory;
  await expectLocks(byDirectory());
});

describe('docs/quorum.md', () => {
  it('is right about three Redis servers and about a mix with Postgres, and that new ones do not vote yet', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => startRedis({ port: 'free' })));
    const urls = servers.map(({ port }) => `redis://127.0.0.1:${port}`);
    [process.env.REDIS_A, process.env.REDIS_B] = urls;
    process.env.LOCK_SERVERS = urls.join();
    process.env.DATABASE_URL = (await sharedPostgres()).url;
    for (const store of [ofThreeServers(), ofRedisAndPostgres()]) {
      const locks = new Locks(store, { logger: false });
      // New servers are in quarantine: then a lock is an outage, and never granted.
      await eventually(async () => {
        const error = await rejection(locks.acquire('order:42', { waitTimeout: 0 }));
        expect(error).toBeInstanceOf(QuorumError);
        expect(String(error)).toContain('does not vote yet'); // the first answers may come too late
      });
      expect(() => locks.semaphore('order:42', { permits: 2 })).toThrow('no semaphores');
      await locks.close();
    }
    await Promise.all(servers.map((server) => server.stop()));
  });
});

it('docs/cli.md: the config file of the command line is one: test/cli runs such files', async () => {
  const { stores, namespace } = config;
  expect([stores.reports.name, namespace]).toEqual(['postgres', 'shop:']);
  await redisStore(stores.default).close();
  await stores.reports.close();
});

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
