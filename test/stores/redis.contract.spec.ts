import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeContract } from '../contract/contracts.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

storeContract('redis', () => redisStore({ options: { path: server.path } }));
