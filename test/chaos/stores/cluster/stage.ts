import { startCluster, slotOf, type RedisCluster } from '../../../support/redis-cluster.js';
import type { RedisServer } from '../../../support/redis-server.js';
import type { Random } from '../../random.js';
import { adminOf } from '../redis/admins.js';
import { leftoversOf } from '../redis/leftovers.js';
import type { Leftover, Stage, StageOptions } from '../store.js';
import { clusterFaults } from './faults.js';
import type { ClusterTarget } from './worker.js';

/** ms */
const NODE_TIMEOUT = 2_000;
/** ms between two failovers of a shard */
export const VOTES = 2 * NODE_TIMEOUT + 500;

interface Shard {
  master: RedisServer;
  replica: RedisServer;
  /** when it was failed over last */
  votedAt: number;
}

/** A Redis Cluster of three masters, each with a replica. No proxies: each node tells clients the addresses of the others. */
export class ClusterStage implements Stage {
  readonly faults = clusterFaults;
  readonly shards: readonly Shard[];
  /** where slots are that were moved */
  private readonly moved = new Map<number, Shard>();

  constructor(
    private readonly cluster: RedisCluster,
    private readonly random: Random,
  ) {
    const { masters, nodes } = cluster;
    this.shards = masters.map((master, index) => ({ master, replica: nodes[masters.length + index]!, votedAt: 0 }));
  }

  /** Finds the masters: the replica of each shard may be the master now. */
  async look(): Promise<void> {
    for (const shard of this.shards) {
      const [role] = await adminOf(shard.replica).role();
      if (role === 'master') [shard.master, shard.replica] = [shard.replica, shard.master];
    }
  }

  /** Moves the slot of this key to another master. */
  async moveSlot(key: string): Promise<void> {
    const slot = slotOf(key);
    const origin = this.cluster.nodeOf(key);
    const from = this.moved.get(slot) ?? this.shards[this.cluster.masters.indexOf(origin)]!;
    const to = this.random.pick(this.shards.filter((shard) => shard !== from));
    await this.cluster.moveSlot({ slot, from: from.master, to: to.master, masters: this.shards.map(({ master }) => master) });
    this.moved.set(slot, to);
  }

  target(): ClusterTarget {
    return { nodes: this.cluster.addresses };
  }

  async heal(): Promise<void> {
    for (const node of this.cluster.nodes) await node.resume();
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    await this.look();
    const all = await Promise.all(this.shards.map(({ master }) => leftoversOf(adminOf(master), pidsOfKilled)));
    return all.flat();
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
  }
}

export async function startStage({ random }: StageOptions): Promise<ClusterStage> {
  const cluster = await startCluster({ replicas: 1, nodeTimeout: NODE_TIMEOUT, args: ['--enable-debug-command', 'yes'] });
  // A failover that nobody asked for would lose writes.
  for (const node of cluster.nodes) await adminOf(node).config('SET', 'cluster-replica-no-failover', 'yes');
  return new ClusterStage(cluster, random.fork('slots'));
}
