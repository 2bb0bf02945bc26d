import { Cluster, type ClusterOptions } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import { startCluster, type RedisCluster, type StartClusterOptions } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { closeNodeRedis, isIoredis, nodeRedisCluster } from '../../support/redis-clients.js';
import { useRedis, type Setting, type StoreOptions } from './setting.js';
import { INBOXES } from './waiting.js';

/** A Cluster for all tests of a file, empty before each. */
export interface ClusterSetting {
  readonly cluster: RedisCluster;
  /** for what a test opens until it ends; its `redis` is a client of the Cluster */
  readonly setting: Setting;
  /** options of a store, also for a child */
  readonly where: { cluster: { host: string; port: number }[] };
  locks(options?: StoreOptions & { clusterOptions?: ClusterOptions }): Locks;
  /** over a client that is lent to the store */
  borrowed(options?: StoreOptions): Locks;
  /** how often scripts were asked for, at all masters */
  scriptCalls(): Promise<number>;
  /** the nodes where processes listen, one for each inbox; of all nodes where none are named */
  listeners(nodes?: readonly RedisServer[]): Promise<RedisServer[]>;
}

export function useCluster(options?: StartClusterOptions): ClusterSetting {
  const own = useRedis(); // for its cleaning up; the server is no part of the Cluster
  let cluster: RedisCluster;
  let redis: Cluster;

  beforeAll(async () => {
    cluster = await startCluster(options);
    redis = new Cluster(cluster.addresses, { redisOptions: { disconnectTimeout: 100 } });
    redis.on('error', () => undefined);
    await redis.ping();
  }, 60_000);
  afterAll(async () => {
    redis.disconnect();
    await cluster.stop();
  });

  const eachNode = <T>(nodes: readonly RedisServer[], ask: (client: ReturnType<RedisServer['client']>, node: RedisServer) => Promise<T>) =>
    Promise.all(
      nodes.map(async (node) => {
        const client = node.client({ retryStrategy: () => null });
        return ask(client, node).finally(() => client.disconnect());
      }),
    );
  // A replica refuses.
  beforeEach(() => eachNode(cluster.nodes, (client) => client.flushall().catch(() => undefined)));

  const setting = Object.create(own, {
    redis: { get: () => redis },
  }) as Setting;
  const where = () => ({ cluster: cluster.addresses });
  return {
    get cluster() {
      return cluster;
    },
    setting,
    get where() {
      return where();
    },
    locks: (store) => own.locks({ ...where(), ...store }),
    borrowed(store) {
      if (!isIoredis) {
        const client = nodeRedisCluster(cluster.addresses);
        own.finally(() => closeNodeRedis(client));
        return own.locks({ client, ...store });
      }
      const client = new Cluster(cluster.addresses, { redisOptions: { disconnectTimeout: 100 } });
      client.on('error', () => undefined);
      own.finally(() => client.disconnect());
      return own.locks({ client, ...store });
    },
    async scriptCalls() {
      const all = await eachNode(cluster.masters, (client) => client.info('commandstats'));
      return all.reduce((sum, stats) => sum + Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0), 0);
    },
    async listeners(nodes = cluster.nodes) {
      const all = await eachNode(nodes, async (client, node) => {
        const channels = (await client.pubsub('CHANNELS', INBOXES).catch(() => [])) as string[];
        return channels.map(() => node);
      });
      return all.flat();
    },
  };
}
