// Breaks the library in one known way per guarantee, in a copy of it, and expects the spec that claims the guarantee to fail.
//
//   npm run test:mutants [-- --all] [-- G5]      with those that CI has no time for; only those of one guarantee, or with these words
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONTRACT_MUTANTS } from './mutants/contract.mjs';
import { CORE_MUTANTS } from './mutants/core.mjs';
import { ENGINE_MUTANTS } from './mutants/engine.mjs';
import { KIND_MUTANTS } from './mutants/kinds.mjs';
import { LATCH_MUTANTS } from './mutants/latch.mjs';
import { MULTI_MUTANTS } from './mutants/multi.mjs';
import { NEST_MUTANTS } from './mutants/nest.mjs';
import { REDIS_MUTANTS } from './mutants/redis.mjs';
import { SHARE_MUTANTS } from './mutants/shares.mjs';
import { SHARING_MUTANTS } from './mutants/sharing.mjs';
import { STANDBY_MUTANTS } from './mutants/standby.mjs';
import { TURNS_MUTANTS } from './mutants/turns.mjs';
import { WAITING_MUTANTS } from './mutants/waiting.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const PARTS = ['lib', 'test', 'scripts', 'jest.config.js', 'package.json', 'tsconfig.json'];
const PARALLEL = 2;
/** As mutants-environment.cjs exits. */
const KILLED = 42;

const all = process.argv.includes('--all');
const wanted = process.argv.slice(2).find((argument) => argument !== '--all');
const quick = [...ENGINE_MUTANTS, ...NEST_MUTANTS];
const others = [
  ...CONTRACT_MUTANTS,
  ...CORE_MUTANTS,
  ...KIND_MUTANTS,
  ...LATCH_MUTANTS,
  ...MULTI_MUTANTS,
  ...REDIS_MUTANTS,
  ...SHARE_MUTANTS,
  ...SHARING_MUTANTS,
  ...STANDBY_MUTANTS,
  ...TURNS_MUTANTS,
  ...WAITING_MUTANTS,
];
const stale = [...quick, ...others].filter(({ file, from }) => readFileSync(join(root, file), 'utf8').split(from).length !== 2);
for (const { guarantee, what, file } of stale) console.error(`${guarantee} ${what}: ${file} has changed, so that this breaks nothing.`);
const mutants = [...quick, ...(all ? others : [])].filter(
  ({ guarantee, what }) => !wanted || guarantee === wanted || what.includes(wanted),
);
const folders = [];
process.once('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

function copyOfTheProject() {
  const folder = mkdtempSync(join(tmpdir(), 'mutants-'));
  folders.push(folder);
  for (const part of PARTS) cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Runs the spec in the copy; resolves to jest's own account of it. */
function runSpec(folder, { spec, test, timeout }) {
  const output = join(folder, 'result.json');
  rmSync(output, { force: true });
  const args = [
    // A test that fails leaves calls behind whose rejections nobody awaits.
    '--unhandled-rejections=warn',
    join('node_modules', 'jest', 'bin', 'jest.js'),
    '--runTestsByPath',
    spec,
    '--json',
    '--outputFile',
    output,
    '--silent',
    '--runInBand',
    '--forceExit',
    '--testEnvironment',
    join(folder, 'scripts', 'mutants-environment.cjs'),
  ];
  if (test) args.push('--testNamePattern', test);
  // What a mutant never does is not worth the wait that the slowest machine is given.
  if (timeout) args.push('--testTimeout', String(timeout));
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (chunk) => (log += chunk));
  return new Promise((resolve) => {
    child.once('exit', (code) => {
      if (code === KILLED) return resolve({ numFailedTests: 1 });
      try {
        resolve({ ...JSON.parse(readFileSync(output, 'utf8')), log });
      } catch {
        resolve({ numFailedTests: 0, numPassedTests: 0, numRuntimeErrorTestSuites: 1, log });
      }
    });
  });
}

/** Red is what is wanted, but by a failed test: a copy that does not even start proves nothing. */
function verdictOf(result) {
  if (result.numFailedTests > 0) return 'killed';
  if (result.numRuntimeErrorTestSuites > 0) return 'did not run';
  return result.numPassedTests > 0 ? 'SURVIVED' : 'ran no test';
}

async function tryMutant(folder, mutant) {
  const file = join(folder, mutant.file);
  const original = readFileSync(file, 'utf8');
  if (original.split(mutant.from).length !== 2) return { mutant, verdict: 'does not apply' };
  writeFileSync(
    file,
    original.replace(mutant.from, () => mutant.to),
  );
  const start = performance.now();
  const result = await runSpec(folder, mutant);
  writeFileSync(file, original);
  return { mutant, verdict: verdictOf(result), seconds: (performance.now() - start) / 1000, log: result.log };
}

const queue = [...mutants];
const bad = [];
async function worker() {
  const folder = copyOfTheProject();
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const { verdict, seconds = 0, log = '' } = await tryMutant(folder, mutant);
    console.log(`${verdict.padEnd(14)} ${mutant.guarantee.padEnd(4)} ${mutant.what} (${seconds.toFixed(1)} s)`);
    if (verdict === 'killed') continue;
    bad.push(mutant);
    if (verdict === 'did not run') console.log(log.slice(-2000));
  }
}

await Promise.all(Array.from({ length: PARALLEL }, worker));
console.log(`${mutants.length - bad.length} of ${mutants.length} mutants killed`);
process.exitCode = bad.length + stale.length === 0 && mutants.length > 0 ? 0 : 1;
