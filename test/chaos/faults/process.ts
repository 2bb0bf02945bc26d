import { fault, type Fault } from './fault.js';

/** Faults of workers. */
export const processFaults: Fault[] = [
  { ...fault('process', 'worker killed', [0, 0], (scene, { slot }) => scene.replaceWorker(slot)), forgets: true },
  fault('process', 'worker stopped briefly', [50, 250], (scene, { slot, duration }) => scene.stopWorker(slot, duration)),
  fault('process', 'worker stopped for longer than its leases', [1_000, 5_500], (scene, { slot, duration }) =>
    scene.stopWorker(slot, duration),
  ),
  fault('process', 'event loop blocked', [100, 2_500], (scene, { slot, duration }) => scene.blockWorker(slot, duration)),
];
