import type { Redis } from 'ioredis';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { type RedisServer, startRedis } from '../../support/redis-server.js';
import type { MakeStore } from '../../contract/open-locks.js';

/** A server for one file of tests, stores on it, and what is on it that has no end, or another one than a fence, which stays for an hour. */
export function redisAndRemains(): { makeStore: MakeStore; remains: () => Promise<string[]> } {
  let server: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    server = await startRedis();
    client = server.client();
  });
  afterAll(() => server.stop());
  return {
    makeStore: () => redisStore({ options: { path: server.path } }),
    async remains() {
      const keys = await client.keys('*');
      const ends = await Promise.all(keys.map((key) => client.pttl(key)));
      return keys.filter((key, index) => !key.endsWith(':fence') || ends[index]! < 0 || ends[index]! > 3_600_000);
    },
  };
}
