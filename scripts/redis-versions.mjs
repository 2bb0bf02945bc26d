// Runs the tests that talk to Redis on each Redis, Valkey and Redict that Debian's releases have, and prints a table. It fails if a version that
// docs/redis.md claims did not run, unless names are given.
//
//   npm run test:redis-versions [-- redis-8 valkey … test/stores/redis/fence.spec.ts …]      no name: all of them; no path: all these tests
//
// It needs Debian with apt, and no right to install: the servers are unpacked into node_modules/.cache with their own libraries, once.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DebianRelease, wrapperOf } from './debian-packages.mjs';
import { ensureServices } from './services.mjs';

/** Releases of Debian, from the first one with Redis 7.0. */
const SUITES = ['bookworm', 'bookworm-backports', 'trixie', 'trixie-backports', 'sid', 'experimental'];
const PROGRAMS = ['redis', 'valkey', 'redict'];
/** Suites whose outcome depends on the version of the server. */
const TESTS = [
  'test/stores/redis', // the contracts beside the folder, too
  'test/stores/quorum',
  'test/doctor/redis.spec.ts',
  'test/fence-guard',
  'test/support/redis',
];

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'node_modules/.cache/redis-versions');
const given = process.argv.slice(2);
const paths = given.filter((argument) => argument.includes('/'));
const names = given.filter((argument) => !argument.includes('/'));

const { servers, missing } = await findServers();
for (const reason of missing) console.log(`Not to be had: ${reason}`);
const wanted = servers.filter(({ name }) => names.length === 0 || names.some((one) => name.startsWith(one)));
if (wanted.length === 0) throw new Error(`None of these servers was asked for: ${servers.map(({ name }) => name).join(', ')}`);
const table = {};
for (const server of wanted) {
  console.log(`${server.name} (${server.from}) …`);
  const { row, failures } = await runTests(server);
  table[server.name] = { from: server.from, ...row };
  for (const failure of failures) console.log(`  FAILED  ${failure}`);
  if (!row.passed || row.failed) process.exitCode = 1;
}
console.table(table);
const untried = names.length > 0 ? [] : claimedVersions().filter((name) => !table[name]?.passed);
if (untried.length > 0) {
  console.log(`Claimed in docs/redis.md, and not run: ${untried.join(', ')}`);
  process.exitCode = 1;
}

/** @returns {string[]} such as `redis-7.0.15`, from the table of versions */
function claimedVersions() {
  const page = readFileSync(join(root, 'docs/redis.md'), 'utf8');
  return PROGRAMS.flatMap((program) => {
    const [, versions] = new RegExp(`^\\| ${program} \\| ([\\d., ]+) \\|$`, 'im').exec(page) ?? [];
    if (!versions) throw new Error(`docs/redis.md has no versions of ${program}`);
    return versions.split(', ').map((version) => `${program}-${version}`);
  });
}

/** One of each version, the releases of Debian before this machine's own. */
async function findServers() {
  const found = new Map();
  const missing = [];
  const attempt = (what, work) => {
    try {
      work();
    } catch (error) {
      missing.push(`${what} (${error.message})`);
    }
  };
  const add = (from, command) => {
    const name = nameOf(command);
    if (!found.has(name)) found.set(name, { name, from, command });
  };
  for (const suite of SUITES) {
    const release = new DebianRelease(suite, cache);
    attempt(`the packages of ${suite}`, () => {
      release.update();
      for (const program of PROGRAMS) {
        attempt(`${program} of ${suite}`, () => {
          const version = release.versionOf(`${program}-tools`);
          if (version) add(suite, unpackServer(release, program, version));
        });
      }
    });
  }
  const own = ensureServices(['redis-server'])['redis-server'];
  if (own.kind === 'local') add('this machine', own.command);
  const inOrder = [...found.values()].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  return { servers: inOrder, missing };
}

/** Debian's server is a program of the package of tools, which acts by the name that it is called by. */
function unpackServer(release, program, version) {
  const folder = release.unpack(`${program}-tools`, version);
  const link = join(folder, `usr/bin/${program}-server`);
  if (!existsSync(link)) symlinkSync(`${program}-check-rdb`, link);
  return wrapperOf(folder, `usr/bin/${program}-server`);
}

/** @returns {string} such as `redis-7.0.15` */
function nameOf(command) {
  const { stdout, stderr, status } = spawnSync(command, ['--version'], { encoding: 'utf8' });
  const [, program, version] = /^(\w+) server v=(\S+)/.exec(stdout ?? '') ?? [];
  if (status !== 0 || !version) throw new Error(`${command} --version: ${stderr || stdout || `status ${status}`}`.trim());
  return `${program.toLowerCase()}-${version}`;
}

async function runTests({ name, command }) {
  const report = join(cache, `${name}.json`);
  mkdirSync(dirname(report), { recursive: true });
  rmSync(report, { force: true });
  const jest = fileURLToPath(import.meta.resolve('jest/bin/jest'));
  const args = ['--silent', '--json', '--outputFile', report, '--testPathPatterns', ...(paths.length > 0 ? paths : TESTS)];
  const env = { ...process.env, TEST_STORE: 'redis', REDIS_SERVER: command };
  const start = performance.now();
  const child = spawn(process.execPath, [jest, ...args], { cwd: root, env, stdio: 'ignore' });
  await once(child, 'exit');
  if (!existsSync(report)) return { row: { passed: 0, failed: 0, seconds: 0 }, failures: ['jest did not run'] };
  const {
    numPassedTests: passed,
    numFailedTests,
    numRuntimeErrorTestSuites: broken,
    testResults,
  } = JSON.parse(readFileSync(report, 'utf8'));
  const failures = testResults.flatMap(({ name: file, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    return [...failed, ...(assertionResults.length === 0 ? [`${file}: ${message.split('\n')[0]}`] : [])];
  });
  return { row: { passed, failed: numFailedTests + broken, seconds: Math.round((performance.now() - start) / 1000) }, failures };
}
