import { redisStore } from 'nestjs-distributed-lock/redis';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { clientName, storeOver } from '../support/redis-clients.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

wholeStoreContract(clientName === 'ioredis' ? 'redis' : `redis over ${clientName}`, () =>
  redisStore(storeOver({ options: { path: server.path } })),
);
