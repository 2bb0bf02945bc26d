// Which suites are in which tier. test/tiers.json names those that cost too much for the `first`: what explores tells the same on each run of unchanged
// code, so it is in `check`. The tier `integrations` has those of the others that
// need a package of test/package.json; `quick` those of the first that start no server.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { needsPackages, startsServers } from './imports.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

export const TIERS = ['quick', 'first', 'check', 'integrations', 'faults', 'nightly', 'page', 'all'];

/** @returns {string[]} such as `test/core/clock.spec.ts` */
export function suitesOfTier(tier) {
  if (!TIERS.includes(tier)) throw new Error(`Unknown tier '${tier}'. Known: ${TIERS.join(', ')}`);
  const lists = JSON.parse(readFileSync(join(root, 'test/tiers.json'), 'utf8'));
  const folders = readdirSync(join(root, 'test'), { withFileTypes: true }).filter(
    (file) => file.isDirectory() && file.name !== 'node_modules',
  );
  const all = folders
    .flatMap(({ name }) =>
      readdirSync(join(root, 'test', name), { recursive: true }).map((file) => `test/${name}/${file.replaceAll('\\', '/')}`),
    )
    .filter((file) => file.endsWith('.spec.ts'));
  const lost = Object.values(lists)
    .flat()
    .find((suite) => !all.includes(suite));
  if (lost) throw new Error(`test/tiers.json names ${lost}, which does not exist.`);
  if (tier === 'all') return all;
  if (tier === 'quick') return suitesOfTier('first').filter((suite) => !startsServers(suite));
  const tierOf = (suite) =>
    Object.keys(lists).find((name) => lists[name].includes(suite)) ?? (needsPackages(suite) ? 'integrations' : 'first');
  return all.filter((suite) => tierOf(suite) === tier);
}
