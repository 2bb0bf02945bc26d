import { etcdStore } from '../../../../lib/stores/etcd/etcd.store.js';
import { type Balancer, startBalancer } from '../../../support/balancer.js';
import { type EtcdServer, moveLeader, startEtcdCluster } from '../../../support/etcd-server.js';
import { wide, type Fault } from '../../faults/fault.js';
import { MembersStage } from '../members/stage.js';
import type { EtcdTarget } from './worker.js';

export async function startStage(): Promise<EtcdStage> {
  const members = await startEtcdCluster();
  const endpoints = members.map(({ url }) => url);
  const balancer = await startBalancer(endpoints);
  return new EtcdStage({ endpoints, prefix: 'chaos/' }, balancer, members);
}

/** Every second worker knows the balancer only, the others know the members. */
class EtcdStage extends MembersStage {
  constructor(
    private readonly direct: EtcdTarget,
    private readonly balancer: Balancer,
    members: readonly EtcdServer[],
  ) {
    super({ members, target: direct, store: etcdStore(direct), faults: faultsOf(members, balancer), answers: () => answers(members) });
  }

  override target(slot: number): EtcdTarget {
    return slot % 2 === 0 ? { ...this.direct, endpoints: [this.balancer.url] } : this.direct;
  }

  override async heal(): Promise<void> {
    this.balancer.up();
    await super.heal();
  }

  override async stop(): Promise<void> {
    await this.balancer.close();
    await super.stop();
  }
}

/** Whether each member can read what a majority has. */
async function answers(members: readonly EtcdServer[]): Promise<boolean> {
  const replies = await Promise.all(members.map((member) => member.ask('/v3/kv/range', { key: 'AA==' })));
  return replies.every(({ ok }) => ok);
}

const faultsOf = (members: readonly EtcdServer[], balancer: Balancer): Fault[] => [
  wide('server', 'old revisions compacted', [0, 0], async () => {
    const [member] = members as [EtcdServer];
    const reply = await member.ask('/v3/kv/range', { key: 'AA==' });
    const { header } = (await reply.json()) as { header: { revision: string } };
    await member.ask('/v3/kv/compaction', { revision: header.revision, physical: true });
  }),
  wide('net', 'a balancer that answers 502', [100, 1_200], async (scene, { duration }) => {
    balancer.down();
    await scene.pause(duration);
    balancer.up();
  }),
  // Where another fault has left the members without a leader, there is none to be moved.
  wide('failover', 'the leader moved', [0, 0], () => moveLeader(members).catch(() => undefined)),
];
