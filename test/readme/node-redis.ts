// #region node-redis
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { LockStore } from 'nestjs-distributed-lock/core';
import { createClient, type RedisClientType } from 'redis';

export function nodeRedisClient(url: string): RedisClientType {
  const client: RedisClientType = createClient({
    url,
    socket: { reconnectStrategy: (retries) => Math.min(50 * retries, 500) },
  });
  client.on('error', (error) => console.error(error));
  return client;
}

/** The app closes the client when the store is closed. */
export function storeOverNodeRedis(client: RedisClientType): LockStore {
  return redisStore({ client });
}
// #endregion
