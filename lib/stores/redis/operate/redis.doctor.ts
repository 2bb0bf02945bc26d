import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import type { StoreDoctor } from '../../../core/store/store-doctor.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { integerOf, listOf } from '../scripts/redis.replies.js';
import { addressChecks, serviceChecks } from './network.checks.js';
import { nodesOf, worstOf, type RedisNode } from './redis.node.js';
import { usersFor } from './redis.users.js';
import { rightsChecks } from './rights.check.js';
import { serverChecks } from './server.checks.js';

/** Examines a Redis server, or each master of a Cluster. */
export class RedisDoctor implements StoreDoctor {
  constructor(private readonly connection: RedisConnection) {}

  async checks(namespace: string): Promise<DoctorCheck[]> {
    const { connection } = this;
    // A Cluster client knows its nodes once it is connected.
    if (connection.client.isCluster) await connection.request((client) => client.call('TIME')).catch(() => undefined);
    const nodes = nodesOf(connection);
    const [first] = nodes as [RedisNode];
    return Promise.all([
      ...this.ofAll(nodes, serverChecks),
      ...addressChecks(connection, first),
      ...this.ofAll(nodes, serviceChecks),
      ...this.ofAll(nodes, (node) => rightsChecks(node, namespace)),
    ]);
  }

  async time(): Promise<number> {
    const [first] = nodesOf(this.connection) as [RedisNode];
    const [seconds, microseconds] = listOf(await first.call('TIME'), 2);
    return integerOf(seconds) * 1000 + integerOf(microseconds) / 1000;
  }

  rights(namespace: string): string {
    return usersFor(this.connection.keyPrefix, namespace, this.connection.client.isCluster === true);
  }

  private ofAll(nodes: readonly RedisNode[], ask: (node: RedisNode) => readonly Promise<DoctorCheck>[]): Promise<DoctorCheck>[] {
    const [first, ...others] = nodes.map(ask) as [readonly Promise<DoctorCheck>[], ...(readonly Promise<DoctorCheck>[])[]];
    const names = nodes.map(({ name }) => name);
    return first.map(async (check, index) => worstOf(await Promise.all([check, ...others.map((checks) => checks[index]!)]), names));
  }
}
