import { redisStore, type NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { storeContract } from '../contract/store.contracts.js';
import { clientName, closeNodeRedis, storeOver } from '../support/redis-clients.js';
import { startCluster, type RedisCluster } from '../support/redis-cluster.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 60_000);
const lent: NodeRedisClient[] = [];
afterEach(async () => {
  for (const client of lent.splice(0)) await closeNodeRedis(client);
});
afterAll(() => cluster.stop());

storeContract(clientName === 'ioredis' ? 'redis cluster' : `redis cluster over ${clientName}`, () =>
  redisStore(storeOver({ cluster: cluster.addresses }, (client) => lent.push(client))),
);
