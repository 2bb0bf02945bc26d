import { eventually } from '../../../support/eventually.js';
import { epochKnown } from '../../../support/redis-cluster.js';
import type { Fault, Strike } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { KEYS } from '../../worker/keys.js';
import type { Aim } from '../redis/faults/aim.js';
import { serverFaults } from '../redis/faults/server.js';
import { ClusterStage, VOTES } from './stage.js';

const names = Object.values(KEYS).flat();

export const clusterFaults: readonly Fault[] = [
  ...serverFaults(((scene, strike) => {
    const { master } = shardOf(scene, strike);
    return { server: master, admin: clusterOf(scene).admin(master) };
  }) satisfies Aim),
  {
    name: 'the slot of a key moves',
    group: 'server',
    isWide: true,
    duration: [0, 0],
    strike: (scene, { extent }) => clusterOf(scene).moveSlot(names[Math.floor(extent * names.length)]!),
  },
  {
    // The master takes no writes until the replica has all earlier ones.
    name: 'failover by CLUSTER FAILOVER',
    group: 'failover',
    isWide: true,
    duration: [0, 1_500],
    async strike(scene, strike) {
      const stage = clusterOf(scene);
      await stage.look();
      const shard = shardOf(scene, strike);
      const { master, replica } = shard;
      // The other masters vote once in two node timeouts for replicas of one master.
      await scene.pause(Math.max(0, shard.votedAt + VOTES - performance.now()));
      shard.votedAt = performance.now();
      const next = stage.admin(replica);
      await eventually(async () => /master_link_status:up/.test(await next.info('replication')), { within: 8_000 });
      await next.call('CLUSTER', 'FAILOVER');
      await eventually(async () => (await next.role())[0] === 'master', { within: VOTES });
      await eventually(async () => (await stage.admin(master).role())[0] === 'slave', { within: 8_000 });
      await stage.look();
      await epochKnown(
        next,
        stage.shards.map((shard) => stage.admin(shard.master)),
      );
      await scene.pause(strike.duration);
    },
  },
];

function clusterOf({ stage }: Scene): ClusterStage {
  if (stage instanceof ClusterStage) return stage;
  throw new Error('This fault needs a Cluster');
}

function shardOf(scene: Scene, { extent }: Strike): ClusterStage['shards'][number] {
  const { shards } = clusterOf(scene);
  return shards[Math.floor(extent * shards.length)]!;
}
