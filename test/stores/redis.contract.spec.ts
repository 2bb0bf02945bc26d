import type { Redis } from 'ioredis';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { mutexContract } from '../contract/mutex.contract.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await startRedis();
  client = server.client();
});
afterAll(() => server.stop());

/** What has no end, or another one than a fence, which stays for an hour. */
async function remains(): Promise<string[]> {
  const keys = await client.keys('*');
  const ends = await Promise.all(keys.map((key) => client.pttl(key)));
  return keys.filter((key, index) => !key.endsWith(':fence') || ends[index]! < 0 || ends[index]! > 3_600_000);
}

mutexContract('redis', () => redisStore({ options: { path: server.path } }), remains);
