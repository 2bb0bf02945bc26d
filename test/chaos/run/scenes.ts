import { isLossy, type Group } from '../faults/fault.js';

/**
 * The groups that are tried in one run, and how long, in parts of the whole. A sentinel leads its clients past the proxies, and losses change what is judged:
 * these have runs of their own. With `each` all have, so that the report can say what each group came to.
 */
export function scenesOf(groups: readonly Group[], each: boolean): { groups: Group[]; share: number }[] {
  const isAlone = (group: Group): boolean => each || group === 'sentinel' || isLossy(group);
  const alone = groups.filter(isAlone).map((group) => ({ groups: [group], share: 1 }));
  const together = groups.filter((group) => !isAlone(group));
  const isOne = together.length > 0 || (groups.length === 0 && !each);
  return isOne ? [{ groups: together, share: Math.max(1, together.length) }, ...alone] : alone;
}

/** `length`: ms of load; starting and ending the servers comes on top. */
const on = (store: string, seed: string, groups: Group[]) => ({ store, seed, groups, length: 9_000 });

/** Runs of CI: each store but memory and ZooKeeper once, under faults that come one after the other. The nightly run has each group of faults by itself. */
export const CI_SCENES = [
  on('redis', 'ci-1', ['process', 'net', 'server', 'restart', 'failover', 'clock']),
  on('cluster', 'ci-12', ['process', 'server', 'failover', 'clock']),
  on('quorum', 'ci-13', ['process', 'net', 'server', 'restart', 'clock']),
  on('postgres', 'ci-9', ['process', 'net', 'server', 'restart', 'clock']),
  on('mysql', 'ci-10', ['process', 'net', 'server', 'restart', 'clock']),
  on('etcd', 'ci-14', ['process', 'server', 'restart', 'clock']),
  on('file', 'ci-11', ['process', 'files', 'clock']),
];
