// What is run when: by what the suites import `npm ci && npm test` is enough, and the quick tier starts no server; .ci/run runs what a change can reach.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { howToLaunch } from './services.js';

let suitesOfTier: (tier: string) => string[];
let reachedFrom: (suite: string) => Set<string>;
let servicesOf: (suites: string[]) => string[];
let stepsFor: (changed: string[]) => Map<string, string>;

beforeAll(async () => {
  ({ suitesOfTier } = (await import(resolve('scripts/tiers.mjs'))) as { suitesOfTier: typeof suitesOfTier });
  ({ reachedFrom } = (await import(resolve('scripts/imports.mjs'))) as { reachedFrom: typeof reachedFrom });
  ({ stepsFor } = (await import(resolve('scripts/reach.mjs'))) as { stepsFor: typeof stepsFor });
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
  const tiers = ['first', 'check', 'integrations', 'faults', 'nightly', 'page'].map(suitesOfTier);
  expect(tiers.flat().sort()).toEqual(suitesOfTier('all').sort());
  expect(suitesOfTier('first')).toEqual(expect.arrayContaining(suitesOfTier('quick')));
});

it.each<[string, string[], string]>([
  ['a page', ['docs/redis.md', 'README.md'], 'lint site tests'],
  [
    'one store',
    ['lib/stores/mysql/mysql.table.ts', 'test/stores/mysql/server.spec.ts'],
    'lint site package examples mutants tests faults chaos',
  ],
  ['the page', ['lib/dashboard/dashboard.ts'], 'lint site package examples mutants tests page'],
  ['a decorator', ['lib/nest/decorators/lock-definition.ts'], 'lint site package examples mutants tests integrations'],
])('a change of %s runs the steps of .ci/run that it can reach, and no others', (_, changed, steps) => {
  expect([...stepsFor(changed).keys()].join(' ')).toBe(steps);
});

it('a change of one store runs the faults of this store and of those that are made of it', () => {
  expect(stepsFor(['lib/stores/postgres/postgres.table.ts']).get('chaos')).toBe('--store postgres,quorum');
  expect(stepsFor(['lib/stores/postgres/postgres.table.ts', 'lib/core/engine.ts']).get('chaos')).toBe('');
});

it('a change of what all tests need runs everything, and so does one that is not known', () => {
  const everything = stepsFor([]);
  for (const file of ['package-lock.json', 'test/support/services.ts', 'scripts/test.mjs', '.ci/run'])
    expect(stepsFor([file, 'docs/redis.md'])).toEqual(everything);
});

it('for the quick tier no server is looked for, and for npm test none that needs Java', () => {
  expect(servicesOf(suitesOfTier('quick'))).toEqual([]);
  expect(servicesOf(suitesOfTier('first'))).toEqual(['redis-server', 'postgres', 'pgbouncer', 'mariadbd', 'etcd']);
});

it('a suite starts no server that its tier does not list', async () => {
  const env = jest.replaceProperty(process, 'env', { TEST_SUITES: 'test/support/tiers.spec.ts' });
  await expect(howToLaunch('promtool')).rejects.toThrow('No suite of this run is known to start promtool');
  env.restore();
});
