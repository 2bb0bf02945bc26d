import { NestFactory } from '@nestjs/core';
import { drizzle } from 'drizzle-orm/node-postgres';
import knexOf from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import { Locks, type LockStore } from 'nestjs-distributed-lock';
import { lockInTransaction, postgresSchema } from 'nestjs-distributed-lock/postgres';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { blocksOf } from '../support/markdown.js';
import { sharedPostgres } from '../support/shared-server.js';
import {
  appOf,
  byDrizzle,
  byKnex,
  byKysely,
  byPool,
  byUrl,
  DistributedLock1700000000000,
  inTransaction,
  inTypeorm,
  knexMigration,
} from './postgres.js';

describe('docs/postgres.md', () => {
  let url: string;
  let pool: pg.Pool;
  beforeAll(async () => {
    ({ url } = await sharedPostgres());
    process.env.DATABASE_URL = url;
    pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => undefined);
    const source = await new DataSource({ type: 'postgres', url, migrations: [DistributedLock1700000000000] }).initialize();
    await source.runMigrations();
    await source.undoLastMigration();
    await source.runMigrations();
    await source.destroy();
  });
  afterAll(() => pool.end());

  it('shows the table as it is', () => {
    expect(blocksOf('docs/postgres.md').map(({ text }) => text)).toContain(postgresSchema().trim());
  });

  async function expectLocks(store: LockStore) {
    const locks = new Locks(store, { logger: false });
    await locks.using('order:42', ({ fencingToken }) => expect(fencingToken).toBeGreaterThan(1e15));
    await locks.close();
  }

  it('makes stores of what an app has', async () => {
    await expectLocks(byUrl());
    await expectLocks(byPool(pool));
    await expectLocks(byDrizzle(drizzle({ client: pool })));
    await expectLocks(byKysely(new Kysely({ dialect: new PostgresDialect({ pool }) })));
    const knex = knexOf({ client: 'pg', connection: url });
    await knexMigration()(knex);
    await expectLocks(byKnex(knex));
    await knex.destroy();
  });

  it('takes a DATABASE_URL as Prisma writes it', async () => {
    process.env.DATABASE_URL = `${url}${url.includes('?') ? '&' : '?'}schema=public&connection_limit=5`;
    await expectLocks(byUrl());
  });

  it('is wired by Nest, with TypeORM', async () => {
    const app = await NestFactory.createApplicationContext(appOf(url) as never, { logger: false });
    await app.get(Locks).using('order:42', () => undefined);
    await app.close();
  });

  it('locks in a transaction', async () => {
    await pool.query('CREATE TABLE orders (id text, paid boolean)');
    await pool.query("INSERT INTO orders VALUES ('42', false)");
    await inTransaction(pool, '42');
    expect((await pool.query('SELECT paid FROM orders')).rows).toEqual([{ paid: true }]);
    await pool.query('CREATE MATERIALIZED VIEW report AS SELECT 1');
    const source = await new DataSource({ type: 'postgres', url }).initialize();
    expect(await inTypeorm(source)).toBe(true);
    const client = await pool.connect();
    await client.query('BEGIN');
    await lockInTransaction((text, values) => client.query(text, values), 'report');
    expect(await inTypeorm(source)).toBe(false);
    await client.query('ROLLBACK');
    client.release();
    await source.destroy();
  });
});
