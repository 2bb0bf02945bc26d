import { fault, wide, type Fault, type Group } from './fault.js';

/** ms. What expires by a clock that jumped may be put off by as much. */
export const JUMP = 40_000;

/** The wall clocks of workers jump, which no lock may care about. */
export const clockFaults: Fault[] = [
  fault('clock', "a worker's wall clock jumps", [200, 3_000], async (scene, { slot, duration, extent }) => {
    scene.setClock(slot, JUMP * (2 * extent - 1));
    await scene.pause(duration);
    scene.setClock(slot, 0);
  }),
];

/** The wall clock of servers jumps, by which keys expire. */
export const serverClockJumps = (group: Group, name: string): Fault =>
  wide(group, name, [200, 3_000], async (scene, { duration, extent }) => {
    scene.stage.setClock!(extent < 0.5 ? -JUMP : JUMP);
    await scene.pause(duration);
    scene.stage.setClock!(0);
  });
