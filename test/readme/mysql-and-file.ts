import type { LockStore } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import type { Pool } from 'mysql2/promise';

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

export function byDirectory(): LockStore {
  // #region file-store
  const store = fileStore({ directory: process.env.LOCK_DIRECTORY ?? '/var/lib/shop/locks' });
  // #endregion
  return store;
}
