// The stores that the documents show.
import { NestFactory } from '@nestjs/core';
import knexOf from 'knex';
import { createPool } from 'mysql2/promise';
import { Locks, type LockStore, type StoreFeature } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mysqlSchema, mysqlStore } from 'nestjs-distributed-lock/mysql';
import { lockInTransaction, postgresSchema } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { createClient } from 'redis';
import { DataSource } from 'typeorm';
import { blocksOf, read } from '../support/markdown.js';
import { sharedPostgres } from '../support/shared-server.js';
import config from './cli-config.js';
import { ofThreeMembers } from './etcd.js';
import { byDirectory, byUrl as byMysqlUrl, byPool as byMysqlPool } from './mysql-and-file.js';
import { storeOverNodeRedis } from './node-redis.js';
import * as postgres from './postgres.js';
import { ofRedisAndPostgres, ofThreeServers } from './quorum.js';
import { storeBehindSentinels, storeOnCluster, storeOnSocket, storeOverTls, storeThatWaitsForReplicas } from './redis-setups.js';
import * as zookeeper from './zookeeper.js';

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
  '/file': () => fileStore({ directory: tmpdir() }),
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

/** A client that is never asked. */
const unused = {} as never;
const NOBODY = { host: '127.0.0.1', port: 1 };

// That these clients and servers lock is tested in test/stores.
it.each<[name: string, ...stores: (() => LockStore)[]]>([
  ['postgres', postgres.byUrl, () => postgres.byPool(new pg.Pool()), () => postgres.byQuery(unused, 'postgres://127.0.0.1:1/shop')],
  ['postgres', () => postgres.byDrizzle({ $client: new pg.Pool() } as never), () => postgres.byKysely(unused)],
  ['postgres', () => postgres.byKnex(unused), () => postgres.byPostgresJs({ listen: jest.fn() } as never), () => config.stores.reports],
  ['mysql', byMysqlUrl, () => byMysqlPool(createPool('mysql://127.0.0.1:1/shop'))],
  ['file', byDirectory],
  ['quorum', ofThreeServers, ofRedisAndPostgres],
  ['redis', storeOnSocket, () => storeOverTls('127.0.0.1', 1), () => storeOverNodeRedis(createClient())],
  ['redis', () => storeBehindSentinels([NOBODY]), () => storeOnCluster([NOBODY]), () => redisStore(config.stores.default)],
  ['redis', () => storeThatWaitsForReplicas('redis://127.0.0.1:1')],
])('the pages show stores of %s whose options are right', async (name, ...stores) => {
  for (const make of stores) {
    const store = make();
    expect(store.name).toBe(name);
    await store.close();
  }
});

it.each([
  ['postgres', postgresSchema().trim()],
  ['mysql', mysqlSchema()],
])('docs/%s.md shows the table as it is', (page, schema) => {
  expect(blocksOf(`docs/${page}.md`).map(({ text }) => text.trim())).toContain(schema);
});

describe('docs/postgres.md', () => {
  let url: string;
  let pool: pg.Pool;
  beforeAll(async () => {
    ({ url } = await sharedPostgres());
    pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => undefined);
    const source = await new DataSource({ type: 'postgres', url, migrations: [postgres.DistributedLock1700000000000] }).initialize();
    await source.runMigrations();
    await source.undoLastMigration();
    await source.destroy();
    const knex = knexOf({ client: 'pg', connection: url });
    await postgres.knexMigration()(knex);
    await knex.destroy();
  });
  afterAll(() => pool.end());

  it('gives Nest a store beside TypeORM, and takes a DATABASE_URL as Prisma writes it', async () => {
    const prisma = `${url}${url.includes('?') ? '&' : '?'}schema=public&connection_limit=5`;
    const app = await NestFactory.createApplicationContext(postgres.appOf(prisma) as never, { logger: false });
    expect(await app.get(Locks).using('order:42', ({ fencingToken }) => fencingToken)).toBeGreaterThan(0);
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

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
