// Puts one known defect at a time into a copy of the library, and expects the test that it names to fail. See README.md.
//
//   npm run nightly -- mutants [-- [--jobs 2] [words]]      only the mutants that have these words in their entry, or in the name of its table
//   npm run nightly -- mutants --since origin/main       only those that are new, or whose spec or file has changed since then, and the first of each guarantee
import { execa } from 'execa';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installPackages } from '../../scripts/packages.mjs';
import { filesOf, readTables } from './tables.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const PARTS = ['lib', 'test', 'scripts', 'docs', '.ci', '.github', 'jest.config.js', 'package.json', 'tsconfig.json'];
/** As first-failure.cjs exits. */
const KILLED = 42;
/** Milliseconds for one test: most defects make one wait for something that does not happen. */
const TEST_TIMEOUT = '10000';
const GUARANTEES = Array.from({ length: 10 }, (_, index) => `G${index + 1}`);

const { values, positionals } = parseArgs({ options: { jobs: { type: 'string' }, since: { type: 'string' } }, allowPositionals: true });
const words = positionals.join(' ').toLowerCase();
const jobs = Number(values.jobs ?? availableParallelism());

const all = readTables(join(root, 'test/mutants'));
const wanted = (values.since === undefined ? all : await sampleSince(values.since)).filter(({ area, text }) =>
  `test/mutants/${area}.diff\n${text}`.toLowerCase().includes(words),
);

await installPackages('test');
const folders = [];
process.once('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const start = performance.now();
const queue = [...wanted];
const bad = GUARANTEES.filter((each) => !all.some(({ guarantee }) => guarantee === each)).map((each) => `${each} has no mutant`);
await Promise.all(Array.from({ length: Math.min(jobs, queue.length) }, work));
if (wanted.length === 0) bad.push(`no mutant has the words '${words}'`);
for (const problem of bad) console.log(problem);
const survivors = wanted.filter(({ verdict }) => verdict !== 'killed');
for (const { verdict, area, line, defect } of survivors) console.log(`${verdict}: ${area}:${line}: ${defect}`);
console.log(`${wanted.length - survivors.length} of ${wanted.length} mutants killed in ${secondsSince(start)} s`);
process.exitCode = bad.length + survivors.length === 0 ? 0 : 1;

async function sampleSince(revision) {
  const base = (await git('merge-base', revision, 'HEAD')).trim();
  // Without a revision to compare with, only the first of each guarantee.
  const changed = new Set(base && (await git('diff', '--name-only', '--relative', base, 'HEAD')).split('\n'));
  const before = base && (await git('grep', '-h', '', base, '--', '*mutants/*'));
  const hasChanged = ({ defect, spec, edits }) =>
    [spec, ...edits.map(({ file }) => file)].some((file) => changed.has(file)) || (before && !before.includes(defect));
  const isFirst = (mutant) =>
    GUARANTEES.includes(mutant.guarantee) && all.find(({ guarantee }) => guarantee === mutant.guarantee) === mutant;
  return all.filter((mutant) => isFirst(mutant) || hasChanged(mutant));
}

/** Its output; nothing where it fails. */
async function git(...args) {
  return (await execa('git', args, { cwd: root, reject: false })).stdout;
}

async function work() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mutants-')));
  folders.push(folder);
  for (const part of PARTS)
    cpSync(join(root, part), join(folder, part), { recursive: true, filter: (path) => !path.endsWith('node_modules') });
  for (const packages of ['node_modules', 'test/node_modules']) symlinkSync(join(root, packages), join(folder, packages));
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const begun = performance.now();
    const { verdict, log = '' } = await tryOut(mutant, folder);
    mutant.verdict = verdict;
    const { guarantee, area, line, defect } = mutant;
    console.log(`${verdict.padEnd(14)} ${guarantee} ${area}:${line}: ${defect} (${secondsSince(begun)} s)`);
    if (verdict !== 'killed' && log) console.log(log.slice(-2000));
  }
}

async function tryOut(mutant, folder) {
  let files;
  try {
    files = filesOf(mutant, (file) => readFileSync(join(root, file), 'utf8'));
  } catch (error) {
    return { verdict: 'does not apply', log: error.message };
  }
  for (const [file, text] of files) writeFileSync(join(folder, file), text);
  try {
    return await runTest(mutant, folder);
  } finally {
    for (const file of files.keys()) cpSync(join(root, file), join(folder, file));
  }
}

async function runTest({ spec, test }, folder) {
  const output = join(folder, 'result.json');
  rmSync(output, { force: true });
  const args = ['--runTestsByPath', spec, ...(test ? ['--testNamePattern', test] : []), '--testTimeout', TEST_TIMEOUT];
  args.push('--testEnvironment', join(folder, 'test/mutants/first-failure.cjs'), '--cacheDirectory', join(folder, 'cache'));
  args.push('--runInBand', '--forceExit', '--silent', '--json', '--outputFile', output);
  const jest = await execa('node_modules/.bin/jest', args, {
    cwd: folder,
    reject: false,
    timeout: 120_000,
    // Random tests find it by chance, always the same one. A test that fails leaves calls behind whose rejections nobody awaits.
    env: { NODE_OPTIONS: '--unhandled-rejections=warn', TEST_SEED: '1' },
  });
  if (jest.exitCode === KILLED) return { verdict: 'killed' };
  if (jest.timedOut) return { verdict: 'did not end' };
  return { verdict: verdictOf(output), log: jest.stderr };
}

/** A failed test is wanted: a copy that does not even start proves nothing. */
function verdictOf(output) {
  try {
    const result = JSON.parse(readFileSync(output, 'utf8'));
    if (result.numFailedTests > 0) return 'killed';
    if (result.numRuntimeErrorTestSuites > 0) return 'did not run';
    return result.numPassedTests > 0 ? 'SURVIVED' : 'ran no test';
  } catch {
    return 'did not run';
  }
}

function secondsSince(time) {
  return ((performance.now() - time) / 1000).toFixed(1);
}
