import type { DatabaseServer } from '../../../support/database-process.js';
import { stageOf, wide, type Fault, type Strike } from '../../faults/fault.js';
import { MembersStage } from './stage.js';

/**
 * Faults of members. One at a time, so that the others are a majority, unless it is the majority that is hit.
 *
 * @param restart the group of members that are killed and restarted: `'loss'`, if the engine forgets then.
 */
export const memberFaults = (restart: 'restart' | 'loss'): Fault[] => [
  paused('a member stopped', (stage, { extent }) => [memberOf(stage, extent)]),
  paused('the leader stopped', async (stage) => [await stage.leader()]),
  // The third one serves workers, and must answer nothing.
  paused('two members stopped', (stage, { extent }) => stage.members.filter((each) => each !== memberOf(stage, extent))),
  restarted(restart, 'a member killed and restarted', (stage, { extent }) => memberOf(stage, extent)),
  restarted(restart, 'the leader killed and restarted', (stage) => stage.leader()),
];

type Choose<T> = (stage: MembersStage, strike: Strike) => T | Promise<T>;

function paused(name: string, choose: Choose<readonly DatabaseServer[]>): Fault {
  return wide('server', name, [50, 2_500], async (scene, strike) => {
    const members = await choose(stageOf(MembersStage, scene), strike);
    for (const member of members) member.pause();
    await scene.pause(strike.duration);
    for (const member of members) member.resume();
    await stageOf(MembersStage, scene).recovered();
  });
}

function restarted(group: Fault['group'], name: string, choose: Choose<DatabaseServer>): Fault {
  return wide(group, name, [0, 2_000], async (scene, strike) => {
    const member = await choose(stageOf(MembersStage, scene), strike);
    await member.kill();
    await scene.pause(strike.duration);
    await member.restart();
    await stageOf(MembersStage, scene).recovered();
  });
}

function memberOf({ members }: MembersStage, extent: number): DatabaseServer {
  return members[Math.floor(extent * members.length)]!;
}
