import { FENCE_ONLY, isLossy, type Group } from '../faults/fault.js';

/** The groups that are tried in one run, and how long, in parts of the whole. */
export interface SceneOptions {
  groups: Group[];
  share: number;
}

/** A sentinel leads its clients past the proxies, and losses change what is judged: these have runs of their own. */
export function scenesOf(groups: readonly Group[]): SceneOptions[] {
  const alone = groups.filter((group) => group === 'sentinel' || isLossy(group)).map((group) => ({ groups: [group], share: 1 }));
  const together = groups.filter((group) => group !== 'sentinel' && !isLossy(group));
  return together.length > 0 || groups.length === 0 ? [{ groups: together, share: Math.max(1, together.length) }, ...alone] : alone;
}

/** Each group by itself, so that the report can say what it came to. */
export function eachGroup(groups: readonly Group[]): SceneOptions[] {
  return groups.map((group) => ({ groups: [group], share: 1 }));
}

/** ms: with starting and ending, all of them take six minutes. */
const CI_LENGTH = 17_000;
const CI_LENGTH_OF_OTHERS = 9_000;

interface CiScene {
  store: string;
  seed: string;
  groups: Group[];
  length: number;
}

const onRedis = (seed: string, groups: Group[]): CiScene => ({ store: 'redis', seed, groups, length: CI_LENGTH });
const on = (store: string, seed: string, groups: Group[]): CiScene => ({ store, seed, groups, length: CI_LENGTH_OF_OTHERS });

/** What CI runs: all groups, some of them together. */
export const CI_SCENES: readonly CiScene[] = [
  onRedis('ci-1', ['process', 'net', 'clock']),
  onRedis('ci-2', ['server', 'rights', 'memory']),
  onRedis('ci-3', ['restart', 'failover']),
  onRedis('ci-4', ['sentinel']),
  onRedis('ci-5', ['process', 'net', 'server', 'rights', 'memory', 'restart', 'failover', 'clock']),
  ...FENCE_ONLY.map((group, i) => onRedis(`ci-${i + 6}`, [group])),
  on('cluster', 'ci-12', ['process', 'server', 'failover', 'clock']),
  { ...on('quorum', 'ci-13', ['process', 'net', 'server', 'restart', 'clock']), length: CI_LENGTH },
  on('postgres', 'ci-8', ['process', 'net', 'clock']),
  on('postgres', 'ci-9', ['server', 'rights', 'restart']),
  on('mysql', 'ci-10', ['process', 'net', 'server', 'rights', 'restart', 'clock']),
  on('file', 'ci-11', ['process', 'files', 'clock']),
];
