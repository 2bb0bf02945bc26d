import type { Fault } from './fault.js';
import { netFaults } from './net.js';
import { processFaults } from './process.js';

export const FAULTS: readonly Fault[] = [...processFaults, ...netFaults];

export function faultsOf(groups: readonly string[]): Fault[] {
  return FAULTS.filter(({ group }) => groups.includes(group));
}

export function faultNamed(name: string): Fault {
  return FAULTS.find((fault) => fault.name === name)!;
}
