import { startEtcd } from './etcd-server.js';
import { startMariadb, type MariadbConnection } from './mariadb-server.js';
import { startPostgres, type PostgresConnection } from './postgres-server.js';
import { startCluster, type ClusterPlan } from './redis-cluster.js';
import { startZookeeper } from './zookeeper-server.js';

/** Where servers are that test files share, as values that go over a socket. */
export interface Connections {
  postgres: PostgresConnection;
  mariadb: MariadbConnection;
  etcd: { url: string };
  zookeeper: { connectionString: string };
  redisCluster: ClusterPlan;
}

export const starters = {
  postgres: async () => (await startPostgres({ config: ['max_connections = 400'] })).connection,
  mariadb: async () => (await startMariadb({ args: ['--max-connections=400'] })).connection,
  etcd: async () => ({ url: (await startEtcd()).url }),
  zookeeper: async () => ({ connectionString: (await startZookeeper()).connectionString }),
  redisCluster: async () => (await startCluster()).plan,
} satisfies { [Name in keyof Connections]: () => Promise<Connections[Name]> };

export async function startShared<Name extends keyof Connections>(name: Name): Promise<{ connection: Connections[Name] }> {
  return { connection: (await starters[name]()) as Connections[Name] };
}
