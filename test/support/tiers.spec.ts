// `npm ci && npm test` is enough, and the quick tier starts no server: both by what the suites import.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { howToLaunch } from './services.js';

let suitesOfTier: (tier: string) => string[];
let reachedFrom: (suite: string) => Set<string>;
let servicesOf: (suites: string[]) => string[];

beforeAll(async () => {
  ({ suitesOfTier } = (await import(resolve('scripts/tiers.mjs'))) as { suitesOfTier: typeof suitesOfTier });
  ({ reachedFrom } = (await import(resolve('scripts/imports.mjs'))) as { reachedFrom: typeof reachedFrom });
  ({ servicesOf } = (await import(resolve('scripts/services.mjs'))) as { servicesOf: typeof servicesOf });
});

it.each([
  ['by its own import', 'test/integrations/cqrs.spec.ts', '@nestjs/cqrs'],
  ['by a file that it imports', 'test/fence-guard/clients.spec.ts', 'typeorm'],
  ['by a child process', 'test/readme/pglite.spec.ts', '@electric-sql/pglite'],
  ['by a server that the run shares', 'test/stores/etcd.contract.spec.ts', 'test/support/shared-server.ask.ts'],
])('what a suite needs is known %s', (_, suite, name) => expect([...reachedFrom(suite)]).toContain(name));

it('no suite of the first tier needs a package of test/package.json', () => {
  const read = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Record<'dependencies' | 'devDependencies', object>;
  const { devDependencies } = read('package.json');
  const others = Object.keys(read('test/package.json').dependencies).filter((name) => !(name in devDependencies));
  expect(suitesOfTier('first').flatMap((suite) => others.filter((name) => reachedFrom(suite).has(name)))).toEqual([]);
  expect(suitesOfTier('integrations')).toContain('test/integrations/graphql.spec.ts');
});

it('each suite is in one tier, and the quick ones are of the first', () => {
  const tiers = ['first', 'integrations', 'faults', 'nightly', 'page'].map(suitesOfTier);
  expect(tiers.flat().sort()).toEqual(suitesOfTier('all').sort());
  expect(suitesOfTier('first')).toEqual(expect.arrayContaining(suitesOfTier('quick')));
});

it('for the quick tier no server is looked for', () => {
  expect([servicesOf(suitesOfTier('quick')), servicesOf(suitesOfTier('first')).length > 3]).toEqual([[], true]);
});

it('a suite starts no server that its tier does not list', async () => {
  const env = jest.replaceProperty(process, 'env', { TEST_SUITES: 'test/support/tiers.spec.ts' });
  await expect(howToLaunch('promtool')).rejects.toThrow('No suite of this run is known to start promtool');
  env.restore();
});
