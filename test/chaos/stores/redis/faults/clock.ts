import type { Fault } from '../../../faults/fault.js';
import { redisOf } from './stage-of.js';

/** ms */
const JUMP = 40_000;

/** The servers' wall clock jumps, by which keys expire. */
export const serverClockFaults: Fault[] = [
  {
    name: "the servers' wall clock jumps",
    group: 'clock-server',
    isWide: true,
    duration: [200, 3_000],
    async strike(scene, { duration, extent }) {
      const stage = redisOf(scene);
      stage.setClock(extent < 0.5 ? -JUMP : JUMP);
      await scene.pause(duration);
      stage.setClock(0);
    },
  },
];
