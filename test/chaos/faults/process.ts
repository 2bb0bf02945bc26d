import type { Fault } from './fault.js';

/** Faults of workers. */
export const processFaults: Fault[] = [
  {
    name: 'worker killed',
    group: 'process',
    forgets: true,
    duration: [0, 0],
    strike: (scene, { slot }) => scene.replaceWorker(slot),
  },
  {
    name: 'worker stopped briefly',
    group: 'process',
    duration: [50, 250],
    strike: (scene, { slot, duration }) => scene.stopWorker(slot, duration),
  },
  {
    name: 'worker stopped for longer than its leases',
    group: 'process',
    duration: [1_000, 5_500],
    strike: (scene, { slot, duration }) => scene.stopWorker(slot, duration),
  },
  {
    name: 'event loop blocked',
    group: 'process',
    duration: [100, 2_500],
    strike: (scene, { slot, duration }) => scene.blockWorker(slot, duration),
  },
];
