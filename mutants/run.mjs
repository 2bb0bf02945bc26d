// Puts one known defect at a time into a copy of the library, and expects the test that its patch names to fail. See README.md.
//
//   npm run test:mutants [-- [--jobs 2] [words]]      only the patches that have these words in their path or header
//   npm run test:mutants -- --since origin/main       only those whose patch, spec or patched file has changed since then, and the first of each guarantee
import { execa } from 'execa';
import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installPackages } from '../scripts/packages.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const PARTS = [
  'lib',
  'test',
  'scripts',
  'schema',
  '.ci',
  '.github',
  'mutants/first-failure.cjs',
  'jest.config.js',
  'package.json',
  'tsconfig.json',
];
/** As first-failure.cjs exits. */
const KILLED = 42;
/** Milliseconds for one test: most defects make one wait for something that does not happen. */
const TEST_TIMEOUT = '10000';
const GUARANTEES = Array.from({ length: 10 }, (_, index) => `G${index + 1}`);

const { values, positionals } = parseArgs({ options: { jobs: { type: 'string' }, since: { type: 'string' } }, allowPositionals: true });
const words = positionals.join(' ').toLowerCase();
const jobs = Number(values.jobs ?? availableParallelism());

const all = readdirSync(join(root, 'mutants'), { recursive: true })
  .filter((path) => path.endsWith('.patch'))
  .sort()
  .map(readPatch);
const wanted = (values.since === undefined ? all : await sampleSince(values.since)).filter(({ path, header }) =>
  `${path}\n${header}`.toLowerCase().includes(words),
);

await installPackages('test');
const folders = [];
process.once('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const start = performance.now();
const queue = [...wanted];
const bad = GUARANTEES.filter((each) => !all.some(({ guarantee }) => guarantee === each)).map((each) => `${each} has no mutant`);
await Promise.all(Array.from({ length: Math.min(jobs, queue.length) }, work));
if (wanted.length === 0) bad.push(`no patch has the words '${words}'`);
for (const problem of bad) console.log(problem);
const survived = wanted.filter(({ verdict }) => verdict !== 'killed').length;
console.log(`${wanted.length - survived} of ${wanted.length} mutants killed in ${secondsSince(start)} s`);
process.exitCode = bad.length + survived === 0 ? 0 : 1;

function readPatch(path) {
  const text = readFileSync(join(root, 'mutants', path), 'utf8');
  const header = text.slice(0, text.indexOf('--- '));
  const of = (name) => new RegExp(`^${name}: (.+)$`, 'm').exec(header)?.[1];
  const files = [...text.matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, file]) => file);
  return { path, text, header, files, guarantee: of('Guarantee'), defect: of('Defect'), spec: of('Spec'), test: of('Test') };
}

async function sampleSince(revision) {
  const { stdout, stderr, failed } = await execa('git', ['diff', '--name-only', '--relative', `${revision}...HEAD`], {
    cwd: root,
    reject: false,
  });
  if (failed) console.log(`Nothing to compare with: ${stderr}`);
  const changed = new Set(stdout.split('\n'));
  const isFirst = (patch) => GUARANTEES.includes(patch.guarantee) && all.find(({ guarantee }) => guarantee === patch.guarantee) === patch;
  return all.filter(
    (patch) => isFirst(patch) || [...patch.files, patch.spec, join('mutants', patch.path)].some((file) => changed.has(file)),
  );
}

async function work() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mutants-')));
  folders.push(folder);
  for (const part of PARTS)
    cpSync(join(root, part), join(folder, part), { recursive: true, filter: (path) => !path.endsWith('node_modules') });
  for (const packages of ['node_modules', 'test/node_modules']) symlinkSync(join(root, packages), join(folder, packages));
  for (let patch = queue.shift(); patch; patch = queue.shift()) {
    const begun = performance.now();
    const { verdict, log = '' } = await tryOut(patch, folder);
    patch.verdict = verdict;
    console.log(`${verdict.padEnd(14)} ${patch.guarantee} ${patch.path.replace('.patch', '')}: ${patch.defect} (${secondsSince(begun)} s)`);
    if (verdict !== 'killed' && log) console.log(log.slice(-2000));
  }
}

async function tryOut(patch, folder) {
  if (!patch.guarantee || !patch.defect || !patch.spec) return { verdict: 'bad header' };
  const applied = await execa('git', ['apply', '-C1'], {
    cwd: folder,
    input: patch.text,
    reject: false,
    // As in no repository, wherever temporary folders are.
    env: { GIT_CEILING_DIRECTORIES: dirname(folder) },
  });
  if (applied.failed) return { verdict: 'does not apply', log: applied.stderr };
  try {
    return await runTest(patch, folder);
  } finally {
    for (const file of patch.files) cpSync(join(root, file), join(folder, file));
  }
}

async function runTest({ spec, test }, folder) {
  const output = join(folder, 'result.json');
  rmSync(output, { force: true });
  const args = ['--runTestsByPath', spec, ...(test ? ['--testNamePattern', test] : []), '--testTimeout', TEST_TIMEOUT];
  args.push('--testEnvironment', join(folder, 'mutants/first-failure.cjs'), '--cacheDirectory', join(folder, 'cache'));
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
