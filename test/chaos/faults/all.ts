import type { Stage } from '../stores/store.js';
import { clockFaults } from './clock.js';
import type { Fault } from './fault.js';
import { netFaults } from './net.js';
import { processFaults } from './process.js';

/** The faults of these groups that a stage can be put through: those of any store, and its own. */
export function faultsOf(groups: readonly string[], stage: Stage): Fault[] {
  const all = [...processFaults, ...(stage.proxies?.length ? netFaults : []), ...clockFaults, ...stage.faults];
  return all.filter(({ group, forgets }) => groups.includes(group) && !(stage.isPrivate && forgets));
}
