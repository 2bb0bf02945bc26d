import type { EtcdServer } from '../../../test/support/etcd-server.js';
import type { Fault, Strike } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { EtcdStage } from './stage.js';

/** Faults of members. One at a time, so that the others are a majority, unless it is the majority that is hit. */
export const etcdFaults: readonly Fault[] = [
  wide(
    'server',
    'a member stopped',
    [50, 2_500],
    paused((stage, { extent }) => [memberOf(stage, extent)]),
  ),
  wide(
    'server',
    'the leader stopped',
    [50, 2_500],
    paused(async (stage) => [(await stage.leader()) ?? stage.members[0]!]),
  ),
  // The third one serves workers, and must answer nothing.
  wide(
    'server',
    'two members stopped',
    [50, 2_000],
    paused((stage, { extent }) => stage.members.filter((each) => each !== memberOf(stage, extent))),
  ),
  wide('server', 'old revisions compacted', [0, 0], async (stage) => {
    const [member] = stage.members as [EtcdServer];
    const { header } = await stage.ask<{ header: { revision: string } }>(member, '/v3/kv/range', { key: 'AA==' });
    await stage.ask(member, '/v3/kv/compaction', { revision: header.revision, physical: true });
  }),
  wide(
    'restart',
    'a member killed and restarted',
    [0, 2_000],
    restarted((stage, { extent }) => memberOf(stage, extent)),
  ),
  wide(
    'restart',
    'the leader killed and restarted',
    [0, 2_000],
    restarted(async (stage) => (await stage.leader()) ?? stage.members[0]!),
  ),
];

type Act = (stage: EtcdStage, pause: () => Promise<void>, strike: Strike) => Promise<void>;
type Choose<T> = (stage: EtcdStage, strike: Strike) => T | Promise<T>;

function paused(choose: Choose<readonly EtcdServer[]>): Act {
  return async (stage, pause, strike) => {
    const members = await choose(stage, strike);
    for (const member of members) member.pause();
    await pause();
    for (const member of members) member.resume();
  };
}

function restarted(choose: Choose<EtcdServer>): Act {
  return async (stage, pause, strike) => {
    const member = await choose(stage, strike);
    await member.kill();
    await pause();
    await member.restart();
  };
}

function memberOf({ members }: EtcdStage, extent: number): EtcdServer {
  return members[Math.floor(extent * members.length)]!;
}

function wide(group: Fault['group'], name: string, duration: Fault['duration'], act: Act): Fault {
  return { name, group, isWide: true, duration, strike: (scene, one) => act(etcdOf(scene), () => scene.pause(one.duration), one) };
}

function etcdOf({ stage }: Scene): EtcdStage {
  if (stage instanceof EtcdStage) return stage;
  throw new Error('This fault needs etcd');
}
