// #region node-redis
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { LockStore } from 'nestjs-distributed-lock/core';
import type { RedisClientType } from 'redis';

/** @param client what `createClient({ url })` returns, connected or not */
export function storeOverNodeRedis(client: RedisClientType): LockStore {
  return redisStore({ client });
}
// #endregion
