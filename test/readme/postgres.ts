import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Knex } from 'knex';
import { CompiledQuery, type Kysely } from 'kysely';
import { DistributedLockModule, type LockStore } from 'nestjs-distributed-lock';
import type { PostgresPool } from 'nestjs-distributed-lock/postgres';
import { lockInTransaction, postgresSchema, postgresStore, tryLockInTransaction } from 'nestjs-distributed-lock/postgres';
import type { Pool } from 'pg';
import type { Sql } from 'postgres';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';

export function byUrl(): LockStore {
  // #region postgres-url
  const store = postgresStore({ url: process.env.DATABASE_URL ?? 'postgres://localhost:5432/shop' });
  // #endregion
  return store;
}

export function byPool(pool: PostgresPool): LockStore {
  // #region postgres-pool
  const store = postgresStore({ pool }); // a Pool of `pg`
  // #endregion
  return store;
}

export function appOf(url: string): unknown {
  // #region postgres-typeorm
  @Module({
    imports: [TypeOrmModule.forRoot({ type: 'postgres', url }), DistributedLockModule.forRoot({ store: postgresStore({ url }) })],
  })
  class AppModule {}
  // #endregion
  return AppModule;
}

export function byQuery(source: DataSource, url: string): LockStore {
  // #region postgres-query
  const store = postgresStore({
    query: (text, values) => source.query(text, values),
    listen: { connectionString: url }, // without it, waiters poll
  });
  // #endregion
  return store;
}

export function byDrizzle(db: NodePgDatabase & { $client: Pool }): LockStore {
  // #region postgres-drizzle
  const store = postgresStore({ pool: db.$client });
  // #endregion
  return store;
}

export function byKysely(db: Kysely<object>): LockStore {
  // #region postgres-kysely
  const store = postgresStore({ query: (text, values) => db.executeQuery(CompiledQuery.raw(text, values)) });
  // #endregion
  return store;
}

export function byKnex(knex: Knex): LockStore {
  // #region postgres-knex
  const named = (values: unknown[]) => Object.fromEntries(values.map((value, index) => [`v${index + 1}`, value]));
  const store = postgresStore({
    query: (text, values) => knex.raw(text.replace(/\$(\d+)/g, ':v$1'), named(values) as Record<string, never>),
  });
  // #endregion
  return store;
}

export function byPostgresJs(sql: Sql): LockStore {
  // #region postgres-js
  const store = postgresStore({ query: (text, values) => sql.unsafe(text, values as string[]), listen: sql.listen });
  // #endregion
  return store;
}

// #region postgres-migration
export class DistributedLock1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(postgresSchema());
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE distributed_lock');
  }
}
// #endregion

export function knexMigration() {
  // #region postgres-knex-migration
  const up = (knex: Knex) => knex.schema.raw(postgresSchema());
  // #endregion
  return up;
}

export async function inTransaction(pool: Pool, order: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    // #region postgres-transaction
    const query = (text: string, values: unknown[]) => client.query(text, values);
    await lockInTransaction(query, `order:${order}`, { waitTimeout: 2000 });
    await client.query('UPDATE orders SET paid = true WHERE id = $1', [order]);
    // #endregion
    await client.query('COMMIT');
  } finally {
    client.release();
  }
}

export async function inTypeorm(source: DataSource): Promise<boolean> {
  let isMine = false;
  // #region postgres-transaction-typeorm
  await source.transaction(async (manager) => {
    isMine = await tryLockInTransaction((text, values) => manager.query(text, values), 'report');
    if (isMine) await manager.query('REFRESH MATERIALIZED VIEW report');
  });
  // #endregion
  return isMine;
}
