import { clockFaults } from './clock.js';
import { failoverFaults } from './failover.js';
import type { Fault } from './fault.js';
import { lossFaults } from './loss.js';
import { memoryFaults } from './memory.js';
import { netFaults } from './net.js';
import { processFaults } from './process.js';
import { restartFaults } from './restart.js';
import { rightsFaults } from './rights.js';
import { sentinelFaults } from './sentinel.js';
import { serverFaults } from './server.js';

export const FAULTS: readonly Fault[] = [
  ...processFaults,
  ...netFaults,
  ...serverFaults,
  ...rightsFaults,
  ...memoryFaults,
  ...restartFaults,
  ...failoverFaults,
  ...sentinelFaults,
  ...clockFaults,
  ...lossFaults,
];

export function faultsOf(groups: readonly string[]): Fault[] {
  return FAULTS.filter(({ group }) => groups.includes(group));
}

export function faultNamed(name: string): Fault {
  return FAULTS.find((fault) => fault.name === name)!;
}
