import { redisStore, type NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { clientName, closeNodeRedis, storeOver } from '../support/redis-clients.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
const lent: NodeRedisClient[] = [];
afterEach(async () => {
  for (const client of lent.splice(0)) await closeNodeRedis(client);
});
afterAll(() => server.stop());

wholeStoreContract(clientName === 'ioredis' ? 'redis' : `redis over ${clientName}`, () =>
  redisStore(storeOver({ options: { path: server.path } }, (client) => lent.push(client))),
);
