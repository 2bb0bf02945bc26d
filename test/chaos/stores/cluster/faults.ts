import { eventually } from '../../../support/eventually.js';
import { epochKnown } from '../../../support/redis-cluster.js';
import { stageOf, wide, type Fault, type Strike } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { keyAt } from '../../worker/keys.js';
import { adminOf } from '../redis/admins.js';
import { serverFaults } from '../redis/faults/server.js';
import { ClusterStage, VOTES } from './stage.js';

export const clusterFaults: readonly Fault[] = [
  ...serverFaults((scene, strike) => shardOf(scene, strike).master),
  wide('server', 'the slot of a key moves', [0, 0], (scene, { extent }) => stageOf(ClusterStage, scene).moveSlot(keyAt(extent))),
  // The master takes no writes until the replica has all earlier ones.
  wide('failover', 'failover by CLUSTER FAILOVER', [0, 1_500], async (scene, strike) => {
    const stage = stageOf(ClusterStage, scene);
    await stage.look();
    const shard = shardOf(scene, strike);
    const { master, replica } = shard;
    // The other masters vote once in two node timeouts for replicas of one master.
    await scene.pause(Math.max(0, shard.votedAt + VOTES - performance.now()));
    shard.votedAt = performance.now();
    const next = adminOf(replica);
    await eventually(async () => /master_link_status:up/.test(await next.info('replication')), { within: 8_000 });
    await next.call('CLUSTER', 'FAILOVER');
    await eventually(async () => (await next.role())[0] === 'master', { within: VOTES });
    await eventually(async () => (await adminOf(master).role())[0] === 'slave', { within: 8_000 });
    await stage.look();
    await epochKnown(
      next,
      stage.shards.map((shard) => adminOf(shard.master)),
    );
    await scene.pause(strike.duration);
  }),
];

function shardOf(scene: Scene, { extent }: Strike): ClusterStage['shards'][number] {
  const { shards } = stageOf(ClusterStage, scene);
  return shards[Math.floor(extent * shards.length)]!;
}
