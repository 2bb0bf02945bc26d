import type { RedisClient } from '../connection/redis.client.js';
import { NodeRedisSingle } from './node-redis.single.js';
import { isNodeRedis, isPool, type NodeRedisClient } from './node-redis.types.js';

/** One for all stores of a client, which then carries few listeners of ours. */
const known = new WeakMap<object, RedisClient>();

/** A client of either package as the store uses it. */
export function redisClientOf(client: RedisClient | NodeRedisClient): RedisClient {
  if (!isNodeRedis(client)) return client as RedisClient;
  let adapter = known.get(client);
  if (!adapter) {
    adapter = new NodeRedisSingle(client);
    known.set(client, adapter);
  }
  return adapter;
}

/** Why this cannot be the client of a store; `undefined`: it can. */
export function problemOf(client: unknown): string | undefined {
  const { evalsha, evalSha } = Object(client) as { evalsha?: unknown; evalSha?: unknown };
  if (typeof evalsha === 'function') return undefined;
  if (isPool(client)) return '"client" is a pool, in which requests overtake each other: pass a client of createClient()';
  if (isNodeRedis(client)) return serversOf(client);
  if (typeof evalSha === 'function') return '"client" is of an old version of redis: version 5 or later is needed';
  return '"client" must be a client of ioredis or redis (node-redis)';
}

/** By themselves they learn of a failover late, repeat requests, and let requests overtake each other. */
function serversOf(client: object): string | undefined {
  if ('nodeClient' in client)
    return '"client" is a cluster of redis (node-redis): install ioredis and give redisStore({ cluster: [{ host, port }] })';
  if ('getMasterNode' in client)
    return '"client" is a sentinel of redis (node-redis): install ioredis and give redisStore({ sentinels, name })';
  return undefined;
}
