import { Cluster, type ClusterOptions } from 'ioredis';
import type { Locks, LocksOptions } from 'nestjs-distributed-lock/core';
import { startCluster, type ClusterNode, type RedisCluster, type StartClusterOptions } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { sharedCluster } from '../../support/shared-cluster.js';
import { REQUEST_TIMEOUT, useRedis, type Setting, type StoreOptions } from './setting.js';
import { INBOXES, scriptCalls } from './waiting.js';

/** A Cluster for all tests of a file, empty before each. */
export interface ClusterSetting<Node extends ClusterNode = ClusterNode> {
  readonly cluster: RedisCluster<Node>;
  /** for what a test opens until it ends; its `redis` is a client of the Cluster */
  readonly setting: Setting;
  /** options of a store, also for a child */
  readonly where: { cluster: { host: string; port: number }[] };
  /** one key at each master */
  keys(): string[];
  locks(options?: StoreOptions & { clusterOptions?: ClusterOptions }, locksOptions?: LocksOptions): Locks;
  /** Asks each of these nodes; all masters where none are named. */
  each<T>(ask: (client: ReturnType<Node['client']>, node: Node) => Promise<T>, nodes?: readonly Node[]): Promise<T[]>;
  /** how often scripts were asked for, at all masters */
  scriptCalls(): Promise<number>;
  /** the nodes where processes listen, one for each inbox; of all nodes where none are named */
  listeners(nodes?: readonly Node[]): Promise<Node[]>;
}

/** The Cluster of this Jest worker: a test must not break it. */
export const useCluster = (): ClusterSetting => useClusterOf(sharedCluster);

/** A Cluster of this file alone, which a test may break. */
export const useOwnCluster = (options?: StartClusterOptions): ClusterSetting<RedisServer> => useClusterOf(() => startCluster(options));

function useClusterOf<Node extends ClusterNode>(start: () => Promise<RedisCluster<Node>>): ClusterSetting<Node> {
  const own = useRedis(); // for its cleaning up; the server is no part of the Cluster
  let cluster: RedisCluster<Node>;
  let redis: Cluster;

  beforeAll(async () => {
    cluster = await start();
    // For so long a client that is closed may keep its process alive.
    redis = new Cluster(cluster.addresses, { redisOptions: { disconnectTimeout: 100 } });
    redis.on('error', () => undefined);
    await redis.ping();
  });
  afterAll(async () => {
    redis.disconnect();
    await cluster.stop();
  });
  // A replica refuses.
  beforeEach(() => on.each((client) => client.flushall().catch(() => undefined), cluster.nodes));

  const on: ClusterSetting<Node> = {
    get cluster() {
      return cluster;
    },
    setting: Object.create(own, { redis: { get: () => redis } }) as Setting,
    get where() {
      return { cluster: cluster.addresses };
    },
    keys: () => cluster.masters.map((node) => cluster.keysOn(node, 1)[0]!),
    locks: (store, options) => own.locks({ requestTimeout: REQUEST_TIMEOUT, cluster: cluster.addresses, ...store }, options),
    each: (ask, nodes = cluster.masters) =>
      Promise.all(
        nodes.map(async (node) => {
          const client = node.client({ retryStrategy: () => null }) as ReturnType<Node['client']>;
          return ask(client, node).finally(() => client.disconnect());
        }),
      ),
    async scriptCalls() {
      const all = await on.each((client) => scriptCalls({ redis: client }));
      return all.reduce((sum, calls) => sum + calls);
    },
    async listeners(nodes = cluster.nodes) {
      const all = await on.each(async (client, node) => {
        const channels = (await client.pubsub('CHANNELS', INBOXES).catch(() => [])) as string[];
        return channels.map(() => node);
      }, nodes);
      return all.flat();
    },
  };
  return on;
}
