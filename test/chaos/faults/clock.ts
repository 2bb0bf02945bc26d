import type { Fault } from './fault.js';

/** ms */
const JUMP = 40_000;

/** The wall clocks of workers jump, which no lock may care about. */
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
];
