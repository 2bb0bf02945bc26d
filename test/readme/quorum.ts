import type { LockStore } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';

export function ofThreeServers(): LockStore {
  // #region quorum
  const urls = (process.env.LOCK_SERVERS ?? 'redis://lock-a,redis://lock-b,redis://lock-c').split(',');
  const store = quorumStore(urls.map((url) => redisStore({ url })));
  // #endregion
  return store;
}

export function ofRedisAndPostgres(): LockStore {
  // #region mixed
  const store = quorumStore([
    redisStore({ url: process.env.REDIS_A ?? 'redis://lock-a' }),
    redisStore({ url: process.env.REDIS_B ?? 'redis://lock-b' }),
    postgresStore({ url: process.env.DATABASE_URL ?? 'postgres://localhost/shop', schema: 'create' }),
  ]);
  // #endregion
  return store;
}
