// Fails if there is more code than its budget, or a suite of the first tier takes longer. A budget is what there was after the last change that was made
// on purpose to have less: it falls, and does not rise.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Lines. */
const BUDGETS = { lib: 28_529, test: 61_999, 'scripts|bench': 8_127 };
/** Seconds with the workers that `npm test` has, as `npm run nightly -- times` has measured. */
const SUITE = 35;

const root = fileURLToPath(new URL('..', import.meta.url));
const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 25,
});
const files = stdout.split('\n').filter((file) => /\.(tsx?|[cm]?js|lua|diff)$/.test(file) && existsSync(join(root, file)));
const problems = [];
for (const [folders, budget] of Object.entries(BUDGETS)) {
  const own = files.filter((file) => new RegExp(`^(${folders})/`).test(file));
  const lines = own.reduce((sum, file) => sum + readFileSync(join(root, file), 'utf8').split('\n').length - 1, 0);
  if (lines > budget) problems.push(`${folders.replace('|', ' and ')} have ${lines} lines, and a budget of ${budget}.`);
}
const durations = Object.entries(JSON.parse(readFileSync(join(root, 'test/durations.json'), 'utf8')));
for (const [suite, seconds] of durations) if (seconds > SUITE) problems.push(`${suite} takes ${seconds} s, and may take ${SUITE}.`);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
