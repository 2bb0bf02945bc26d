import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';

export function locksOnPostgres(): Locks {
  // #region postgres-store
  const store = postgresStore({ url: process.env.DATABASE_URL ?? 'postgres://localhost:5432/shop', schema: 'create' });
  // #endregion
  return new Locks(store);
}
