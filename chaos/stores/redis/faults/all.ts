import type { Fault } from '../../../faults/fault.js';
import { serverClockFaults } from './clock.js';
import { failoverFaults } from './failover.js';
import { lossFaults } from './loss.js';
import { memoryFaults } from './memory.js';
import { restartFaults } from './restart.js';
import { rightsFaults } from './rights.js';
import { sentinelFaults } from './sentinel.js';
import { serverFaults } from './server.js';

/** What can happen to Redis servers. */
export const redisFaults: readonly Fault[] = [
  ...serverFaults,
  ...rightsFaults,
  ...memoryFaults,
  ...restartFaults,
  ...failoverFaults,
  ...sentinelFaults,
  ...serverClockFaults,
  ...lossFaults,
];
