import type { PGlite } from '@electric-sql/pglite';
import type { LockStore } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';

export function byPglite(db: Pick<PGlite, 'query' | 'listen'>): LockStore {
  // #region postgres-pglite
  const store = postgresStore({
    query: (text, values) => db.query(text, values),
    listen: (channel, received) => db.listen(`"${channel}"`, received), // without the quotes it takes no colon
    schema: 'create',
  });
  // #endregion
  return store;
}
