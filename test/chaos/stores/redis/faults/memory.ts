import type { Fault } from '../../../faults/fault.js';
import { redisOf } from './stage-of.js';

/** The server takes no more data for a while. */
export const memoryFaults: Fault[] = [
  {
    name: 'memory full',
    group: 'memory',
    isWide: true,
    duration: [100, 3_000],
    async strike(scene, { duration }) {
      const stage = redisOf(scene);
      await stage.onEach('CONFIG', 'SET', 'maxmemory', '1');
      await scene.pause(duration);
      await stage.onEach('CONFIG', 'SET', 'maxmemory', '0');
    },
  },
];
