import type { ZookeeperServer } from '../../../test/support/zookeeper-server.js';
import type { Fault, Strike } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { ZookeeperStage } from './stage.js';

/** Faults of members. One at a time, so that the others are a majority, unless it is the majority that is hit. */
export const zookeeperFaults: readonly Fault[] = [
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

type Act = (stage: ZookeeperStage, pause: () => Promise<void>, strike: Strike) => Promise<void>;
type Choose<T> = (stage: ZookeeperStage, strike: Strike) => T | Promise<T>;

function paused(choose: Choose<readonly ZookeeperServer[]>): Act {
  return async (stage, pause, strike) => {
    const members = await choose(stage, strike);
    for (const member of members) member.pause();
    await pause();
    for (const member of members) member.resume();
  };
}

function restarted(choose: Choose<ZookeeperServer>): Act {
  return async (stage, pause, strike) => {
    const member = await choose(stage, strike);
    await member.kill();
    await pause();
    await member.restart();
  };
}

function memberOf({ members }: ZookeeperStage, extent: number): ZookeeperServer {
  return members[Math.floor(extent * members.length)]!;
}

function wide(group: Fault['group'], name: string, duration: Fault['duration'], act: Act): Fault {
  return { name, group, isWide: true, duration, strike: (scene, one) => act(zookeeperOf(scene), () => scene.pause(one.duration), one) };
}

function zookeeperOf({ stage }: Scene): ZookeeperStage {
  if (stage instanceof ZookeeperStage) return stage;
  throw new Error('This fault needs ZooKeeper');
}
