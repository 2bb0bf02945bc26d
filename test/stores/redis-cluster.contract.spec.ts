import { redisStore } from 'nestjs-distributed-lock/redis';
import { wholeStoreContract } from '../contract/store.contracts.js';
import type { ClusterNode, RedisCluster } from '../support/redis-cluster.js';
import { sharedCluster } from '../support/shared-cluster.js';

let cluster: RedisCluster<ClusterNode>;
beforeAll(async () => {
  cluster = await sharedCluster();
});

wholeStoreContract('redis cluster', () => redisStore({ cluster: cluster.addresses }));
