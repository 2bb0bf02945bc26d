import { redisStore, type NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { storeContract } from '../contract/store.contracts.js';
import { clientName, closeNodeRedis, storeOver } from '../support/redis-clients.js';
import type { ClusterNode, RedisCluster } from '../support/redis-cluster.js';
import { sharedCluster } from '../support/shared-cluster.js';

let cluster: RedisCluster<ClusterNode>;
beforeAll(async () => {
  cluster = await sharedCluster();
});
const lent: NodeRedisClient[] = [];
afterEach(async () => {
  for (const client of lent.splice(0)) await closeNodeRedis(client);
});

const clusterOptions = { redisOptions: { disconnectTimeout: 100 } };
storeContract(clientName === 'ioredis' ? 'redis cluster' : `redis cluster over ${clientName}`, () =>
  redisStore(storeOver({ cluster: cluster.addresses, clusterOptions }, (client) => lent.push(client))),
);
