import type { Fault } from '../../../faults/fault.js';
import { serverClockFaults } from './clock.js';
import { failoverFaults } from './failover.js';
import { lossFaults } from './loss.js';
import { memoryFaults } from './memory.js';
import { restartFaults } from './restart.js';
import { rightsFaults } from './rights.js';
import { sentinelFaults } from './sentinel.js';
import { serverFaults } from './server.js';
import type { Aim } from './aim.js';
import { redisOf } from './stage-of.js';

const atMaster: Aim = (scene) => {
  const stage = redisOf(scene);
  return { server: stage.master, admin: stage.admin() };
};

/** Faults of Redis servers. */
export const redisFaults: readonly Fault[] = [
  ...serverFaults(atMaster),
  ...rightsFaults,
  ...memoryFaults,
  ...restartFaults,
  ...failoverFaults,
  ...sentinelFaults,
  ...serverClockFaults,
  ...lossFaults,
];
