import { serverClockJumps } from '../../faults/clock.js';
import { EMPTIED, JUMPED, stageOf, wide, type Fault } from '../../faults/fault.js';
import { serverFaults, type Aim } from '../redis/faults/server.js';
import { QuorumStage } from './stage.js';
import { QUARANTINE } from './worker.js';

/** One member: what strikes two at a time may stop all locks. */
const atMember: Aim = (scene, { extent }) => {
  const { members } = stageOf(QuorumStage, scene);
  return members[Math.floor(extent * members.length)]!;
};

export const quorumFaults: readonly Fault[] = [
  ...serverFaults(atMember),
  serverClockJumps('clock-member', JUMPED),
  {
    // It does not vote before the quarantine is over: until then the others must be well.
    ...wide('restart', EMPTIED, [QUARANTINE + 500, QUARANTINE + 2_500], async (scene, strike) => {
      const server = atMember(scene, strike);
      await server.kill();
      await scene.pause(strike.duration - QUARANTINE - 500);
      await server.restart();
      await scene.pause(QUARANTINE + 500);
    }),
    // What another fault has left at one member is over with the longest lease. A lease without a vote there would not survive that one more is lost.
    calm: 5_000,
  },
];
