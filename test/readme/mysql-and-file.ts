import type { LockStore } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { mysqlSchema, mysqlStore } from 'nestjs-distributed-lock/mysql';
import type { Pool } from 'mysql2/promise';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export function byUrl(): LockStore {
  // #region mysql-url
  const store = mysqlStore({ url: process.env.DATABASE_URL ?? 'mysql://root@localhost:3306/shop' });
  // #endregion
  return store;
}

export function byPool(pool: Pool): LockStore {
  // #region mysql-pool
  const store = mysqlStore({ pool }); // of `mysql2` or `mysql2/promise`
  // #endregion
  return store;
}

// #region mysql-migration
export class DistributedLock1700000000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(mysqlSchema());
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE distributed_lock');
  }
}
// #endregion

export function byDirectory(): LockStore {
  // #region file-store
  const store = fileStore({ directory: process.env.LOCK_DIRECTORY ?? '/var/lib/shop/locks' });
  // #endregion
  return store;
}
