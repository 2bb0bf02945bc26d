import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import type { ClusterNode, RedisCluster } from '../support/redis-cluster.js';
import { sharedCluster } from '../support/shared-cluster.js';

let cluster: RedisCluster<ClusterNode>;
beforeAll(async () => {
  cluster = await sharedCluster();
});

storeContract('redis cluster', () => redisStore({ cluster: cluster.addresses }));
