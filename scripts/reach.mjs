// What a change can reach: `node scripts/reach.mjs [BASE]` prints the steps of .ci/run that can tell something of it, with arguments where a part of a step
// is enough, `--all` all steps, and `--base` the commit that it compares with. The change is what differs from BASE (`origin/main`), committed or not; on a clone of main itself it is what is younger than a few hours.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Longer than a piece of work takes until it lands. */
const RECENT = '8 hours ago';
const PROSE = /\.md$|^docs\/|^\.changeset\/|^\.github\/|^LICENSE$/;
const TESTS_OF_PROSE = 'test/readme test/core test/support test/mutants test/testing test/stores/private-members';
/** The rest, such as manifests and the scripts that run the tests, reaches each step. */
const FOLDERS = /^(lib|test(?!\/support)|examples|sample-app|bench)\//;
const ENGINE = /^lib\/(core|primitives|latch)\/|^lib\/[^/]+$|^test\/(contract|chaos\/(?!stores)|simulation)\//;
/** The folders of which a change reaches a store. */
const STORES = {
  redis: ['redis'],
  cluster: ['redis', 'cluster'],
  postgres: ['postgres', 'records'],
  mysql: ['mysql', 'records'],
  etcd: ['etcd', 'records'],
  zookeeper: ['zookeeper', 'records'],
  file: ['file', 'records'],
  memory: ['memory', 'records'],
  quorum: ['quorum', 'redis', 'postgres', 'records'],
};
/** The files of which a step tells something. With `engine`, those of the engine, too. */
const STEPS = {
  lint: { of: /./ },
  site: { of: /^(lib|docs)\/|\.md$/ },
  package: { of: /^(lib|sample-app)\// },
  examples: { of: /^(lib|examples|sample-app)\// },
  mutants: { of: /^(lib|test)\// },
  tests: { of: /./ },
  check: { of: /^(lib|test)\/stores\/(records|redis|quorum|memory)/, engine: true },
  integrations: { of: /^lib\/(nest|fence-guard|observe|testing)\/|^test\/(integrations|fence-guard|readme|telemetry)\//, engine: true },
  faults: { of: /^lib\/(stores|cli)\/|^test\/(stores|e2e|cli)\/|^sample-app\//, engine: true },
  page: { of: /^lib\/(dashboard|operate)\/|^test\/dashboard\// },
  chaos: { of: /^(lib|test|test\/chaos)\/stores\//, engine: true },
  simulation: { of: /^lib\/stores\/(records|quorum|memory)\//, engine: true },
};

/**
 * @param {string[]} changed files
 * @returns {Map<string, string>} the steps, each with its arguments
 */
export function stepsFor(changed) {
  const code = changed.filter((file) => !PROSE.test(file));
  if (changed.length === 0 || code.some((file) => !FOLDERS.test(file))) return new Map(Object.keys(STEPS).map((step) => [step, '']));
  const reaching = Object.entries(STEPS).filter(([, { of, engine }]) =>
    changed.some((file) => of.test(file) || (engine && ENGINE.test(file))),
  );
  const steps = new Map(reaching.map(([step]) => [step, '']));
  if (code.length === 0) return steps.set('tests', TESTS_OF_PROSE);
  const stores = storesReachedBy(code);
  if (stores && steps.has('faults')) steps.set('faults', ['cli', 'e2e', 'stores/foreign', 'stores/pending', ...stores.map((store) => `stores/${store}`)].map((part) => `test/${part}`).join(' ')); // prettier-ignore
  if (stores && steps.has('chaos')) steps.set('chaos', `--store ${stores.join(',')}`);
  return steps;
}

/** Nothing where each store is reached. */
function storesReachedBy(code) {
  const folders = new Set(code.flatMap((file) => /^(?:lib|test|test\/chaos)\/stores\/([a-z]+)/.exec(file)?.[1] ?? []));
  const known = new Set(Object.values(STORES).flat());
  if (code.some((file) => ENGINE.test(file)) || ![...folders].every((folder) => known.has(folder))) return undefined;
  return Object.keys(STORES).filter((store) => STORES[store].some((folder) => folders.has(folder)));
}

/** Returns the output of git, empty where it fails. */
const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.trim();

/** A commit from before the change, or nothing where none is found. */
export function baseOf(revision = 'origin/main') {
  const fork = git('merge-base', revision, 'HEAD');
  return fork && fork !== git('rev-parse', 'HEAD') ? fork : git('rev-list', '-1', `--before=${RECENT}`, 'HEAD');
}

/** @returns {string[]} the files that differ from a commit, those that git does not track yet among them */
export function changedSince(base) {
  const lists = [git('diff', '--name-only', '--no-renames', base), git('ls-files', '--others', '--exclude-standard')];
  return lists.flatMap((list) => list.split('\n')).filter(Boolean);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({ options: { all: { type: 'boolean' }, base: { type: 'boolean' } }, allowPositionals: true });
  const base = baseOf(positionals[0] || undefined);
  if (values.base) console.log(base);
  else tell(base && !values.all ? changedSince(base) : []);
}

function tell(changed) {
  const steps = stepsFor(changed);
  for (const [step, args] of steps) console.log(`${step} ${args}`.trim());
  const others = Object.keys(STEPS).filter((step) => !steps.has(step));
  if (others.length > 0) console.error(`${changed.length} files have changed, and do not reach: ${others.join(', ')}.`);
}
