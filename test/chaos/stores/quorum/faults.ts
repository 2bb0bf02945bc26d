import { EMPTIED, JUMPED, type Fault } from '../../faults/fault.js';
import type { Aim } from '../redis/faults/aim.js';
import { serverFaults } from '../redis/faults/server.js';
import { QuorumStage } from './stage.js';
import { QUARANTINE } from './worker.js';

/** One member: what strikes two at a time may stop all locks. */
const atMember: Aim = ({ stage }, { extent }) => {
  if (!(stage instanceof QuorumStage)) throw new Error('This fault needs a quorum');
  const server = stage.members[Math.floor(extent * stage.members.length)]!;
  return { server, admin: stage.admin(server) };
};

/** ms */
const JUMP = 40_000;

export const quorumFaults: readonly Fault[] = [
  ...serverFaults(atMember),
  {
    name: JUMPED,
    group: 'clock-member',
    isWide: true,
    duration: [200, 3_000],
    async strike(scene, { duration, extent }) {
      const stage = scene.stage as QuorumStage;
      stage.setClock(extent < 0.5 ? -JUMP : JUMP);
      await scene.pause(duration);
      stage.setClock(0);
    },
  },
  {
    name: EMPTIED,
    group: 'restart',
    isWide: true,
    // What another fault has left at one member is over with the longest lease. A lease without a vote there would not survive that one more is lost.
    calm: 5_000,
    // It does not vote before the quarantine is over: until then the others must be well.
    duration: [QUARANTINE + 500, QUARANTINE + 2_500],
    async strike(scene, strike) {
      const { server } = atMember(scene, strike);
      await server.kill();
      await scene.pause(strike.duration - QUARANTINE - 500);
      await server.restart();
      await scene.pause(QUARANTINE + 500);
    },
  },
];
