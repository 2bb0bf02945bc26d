// How long the tests take: `npm run nightly -- times [quick first check …]`, the tiers of a contributor by default. It writes the slow suites of the first
// tier into test/durations.json: `npm test` begins with them, and scripts/budgets.mjs refuses one that takes too long. Run it on an idle machine.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = join(root, 'test/durations.json');
/** Seconds: what takes less is not written down. */
const NOTED = 15;

function durationsOf(results) {
  const all = results.testResults.map(({ name, startTime, endTime }) => [relative(root, name), Math.round((endTime - startTime) / 1000)]);
  return all.sort(([, one], [, other]) => other - one);
}

function note(durations) {
  const slow = durations.filter(([, seconds]) => seconds >= NOTED);
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(slow), undefined, 2)}\n`);
}

function measure(tier) {
  const folder = mkdtempSync(join(tmpdir(), 'times-'));
  const output = join(folder, 'results.json');
  const start = performance.now();
  const args = ['scripts/test.mjs', '--tier', tier, '--json', `--outputFile=${output}`];
  const { status, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    maxBuffer: 2 ** 28,
  });
  const results = JSON.parse(readFileSync(output, 'utf8'));
  rmSync(folder, { recursive: true });
  const durations = durationsOf(results);
  if (tier === 'first') note(durations);
  if (status !== 0) process.exitCode = 1;
  return {
    passed: results.numPassedTests,
    failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
    seconds: Math.round((performance.now() - start) / 1000),
    workers: durations.reduce((sum, [, seconds]) => sum + seconds, 0),
    processor: Number(/Processor: (\d+) s/.exec(stderr)?.[1]),
  };
}

const { positionals } = parseArgs({ allowPositionals: true });
console.table(Object.fromEntries((positionals.length > 0 ? positionals : ['quick', 'first']).map((tier) => [tier, measure(tier)])));
