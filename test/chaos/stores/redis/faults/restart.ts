import type { Fault } from '../../../faults/fault.js';
import { redisOf } from './stage-of.js';

/** The server is killed, and comes back with all that it had answered for: `appendfsync always`. */
export const restartFaults: Fault[] = [
  {
    name: 'server killed and restarted',
    group: 'restart',
    isWide: true,
    duration: [0, 2_000],
    async strike(scene, { duration }) {
      const { master } = redisOf(scene);
      await master.kill();
      await scene.pause(duration);
      await master.restart();
    },
  },
];
