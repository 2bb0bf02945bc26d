import type { Fault } from './fault.js';
import { redisOf } from './redis.js';

/** ms */
const JUMP = 40_000;

/** Wall clocks jump: those of the workers, which no lock may care about, and those of the servers, by which keys expire. */
export const clockFaults: Fault[] = [
  {
    name: "a worker's wall clock jumps",
    group: 'clock',
    duration: [200, 3_000],
    async strike(scene, { slot, duration, extent }) {
      scene.setClock(slot, JUMP * (2 * extent - 1));
      await scene.pause(duration);
      scene.setClock(slot, 0);
    },
  },
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
