import type { Redis } from 'ioredis';
import { startRedis, type RedisServer } from '../../support/redis-server.js';

/** A server for all tests of a file, empty before each, where the snippets look for one: at REDIS_URL. */
export function useRedisOfEnv(): { readonly server: RedisServer; readonly redis: Redis; readonly url: string } {
  const before = process.env.REDIS_URL;
  let server: RedisServer;
  let redis: Redis;
  const urlOf = ({ path, port }: RedisServer): string => path ?? `redis://127.0.0.1:${port}`;

  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
    process.env.REDIS_URL = urlOf(server);
  });
  beforeEach(() => redis.flushall());
  afterAll(async () => {
    if (before === undefined) delete process.env.REDIS_URL;
    else process.env.REDIS_URL = before;
    await server.stop();
  });

  return {
    get server() {
      return server;
    },
    get redis() {
      return redis;
    },
    get url() {
      return urlOf(server);
    },
  };
}
