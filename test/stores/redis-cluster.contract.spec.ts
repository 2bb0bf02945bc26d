import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeContract } from '../contract/contracts.js';
import { startCluster, type RedisCluster } from '../support/redis-cluster.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 60_000);
afterAll(() => cluster.stop());

storeContract('redis cluster', () => redisStore({ cluster: cluster.addresses }));
