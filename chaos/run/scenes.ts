import { FENCE_ONLY, isLossy, SURVIVABLE, type Group } from '../faults/fault.js';

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

/** What CI runs: all groups, some of them together. */
export const CI_SCENES: readonly { seed: string; groups: Group[] }[] = [
  { seed: 'ci-1', groups: ['process', 'net', 'clock'] },
  { seed: 'ci-2', groups: ['server', 'rights', 'memory'] },
  { seed: 'ci-3', groups: ['restart', 'failover'] },
  { seed: 'ci-4', groups: ['sentinel'] },
  { seed: 'ci-5', groups: [...SURVIVABLE].filter((group) => group !== 'sentinel') },
  ...FENCE_ONLY.map((group, i) => ({ seed: `ci-${i + 6}`, groups: [group] })),
];

/** ms: with starting and ending, all of them take four minutes. */
export const CI_LENGTH = 17_000;
