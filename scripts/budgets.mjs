// Fails if a suite of the first tier is too slow, or a folder has more lines of code than its budget. A budget falls with the code, and is raised only together
// with a sentence in the same change that says what a user gets for it.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tooSlow } from './times.mjs';

const BUDGETS = {
  'lib/core': 5260,
  'lib/latch': 410,
  'lib/primitives': 920,
  'lib/nest': 2650,
  'lib/operate': 1390,
  'lib/observe': 750,
  'lib/cli': 1270,
  'lib/fence-guard': 700,
  'lib/dashboard': 3140,
  'lib/testing': 980,
  'lib/testing/store': 1630,
  'lib/stores/redis': 3720,
  'lib/stores/records': 1940,
  'lib/stores/memory': 160,
  'lib/stores/postgres': 1450,
  'lib/stores/mysql': 780,
  'lib/stores/etcd': 850,
  'lib/stores/zookeeper': 980,
  'lib/stores/file': 730,
  'lib/stores/quorum': 1480,
  test: 58_200,
  'test/chaos': 6265,
  'test/mutants': 4090,
  bench: 3600,
  scripts: 4275,
};
const CODE = new Set(['.ts', '.tsx', '.mjs', '.cjs', '.js', '.lua', '.css', '.diff']);

const root = fileURLToPath(new URL('..', import.meta.url));
const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 25,
});
const lines = Object.fromEntries(Object.keys(BUDGETS).map((folder) => [folder, 0]));
for (const file of stdout.split('\n').filter((each) => CODE.has(extname(each)))) {
  // The longest: `test/chaos` is not a part of the budget of `test`.
  const folder = Object.keys(BUDGETS)
    .filter((each) => file.startsWith(`${each}/`))
    .sort((one, other) => other.length - one.length)[0];
  if (folder) lines[folder] += linesOf(join(root, file));
}
for (const [folder, budget] of Object.entries(BUDGETS)) {
  if (lines[folder] <= budget) continue;
  console.error(`${folder} has ${lines[folder]} lines, and a budget of ${budget}.`);
  process.exitCode = 1;
}
for (const sentence of tooSlow()) {
  console.error(sentence);
  process.exitCode = 1;
}

function linesOf(file) {
  try {
    return readFileSync(file, 'utf8').split('\n').length - 1;
  } catch {
    return 0; // deleted, and not committed
  }
}
