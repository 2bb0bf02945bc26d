import { clusterOf, StartedNode, type ClusterNode, type RedisCluster } from './redis-cluster.js';
import { shared } from './shared-server.ask.js';

/**
 * A Redis Cluster of three masters, which the test files of one Jest worker use one after the other. Its nodes must neither be broken nor get other slots;
 * its `stop` closes clients, and nothing else.
 */
export async function sharedCluster(): Promise<RedisCluster<ClusterNode>> {
  const plan = await shared('redisCluster', process.env.JEST_WORKER_ID);
  return clusterOf(
    plan.ports.map((port) => new StartedNode(port)),
    plan,
  );
}
