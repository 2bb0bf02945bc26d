import type { Redis } from 'ioredis';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { countDownLatchContract } from '../contract/count-down-latch.contract.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await startRedis();
  client = server.client();
});
afterAll(() => server.stop());

countDownLatchContract(
  'redis',
  () => redisStore({ options: { path: server.path } }),
  async (key) => (await client.hkeys(key)).filter((field) => field.startsWith('waiter:')),
);
