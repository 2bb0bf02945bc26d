import type { RedisClient } from '../redis.client.js';
import { NodeRedisCluster } from './node-redis.cluster.js';
import { NodeRedisSentinel } from './node-redis.sentinel.js';
import { NodeRedisSingle } from './node-redis.single.js';
import { isCluster, isNodeRedis, isPool, isSentinel, type NodeRedisClient, type PlainClient } from './node-redis.types.js';

/** One for all stores of a client, which then carries few listeners of ours. */
const known = new WeakMap<object, RedisClient>();

/** A client of either package as the store uses it. */
export function redisClientOf(client: RedisClient | NodeRedisClient): RedisClient {
  if (!isNodeRedis(client)) return client as RedisClient;
  let adapter = known.get(client);
  if (!adapter) {
    adapter = adapterOf(client);
    known.set(client, adapter);
  }
  return adapter;
}

function adapterOf(client: NodeRedisClient): RedisClient {
  if (isCluster(client)) return new NodeRedisCluster(client);
  return isSentinel(client) ? new NodeRedisSentinel(client) : new NodeRedisSingle(client as PlainClient);
}

/** Why this cannot be the client of a store; `undefined`: it can. */
export function problemOf(client: unknown): string | undefined {
  const { evalsha, evalSha } = Object(client) as { evalsha?: unknown; evalSha?: unknown };
  if (typeof evalsha === 'function' || isNodeRedis(client)) return undefined;
  if (isPool(client)) return '"client" is a pool, in which requests overtake each other: pass a client of createClient()';
  if (typeof evalSha === 'function') return '"client" is of an old version of redis: version 5 or later is needed';
  return '"client" must be a client of ioredis or redis (node-redis)';
}
