// Runs the first tier of the tests under what a test must not depend on: `npm run nightly -- sure [busy uptime locale user alone]`, all of them by default.
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildIfChanged } from './build-if-changed.mjs';
import { suitesOfTier } from './tiers.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const isRoot = process.getuid?.() === 0;
const tests = [process.execPath, 'scripts/test.mjs'];
/** Seconds: what has been up for less has not had an hour, nor what a lease of an hour ago would need. */
const UPTIME = 60;
/** Milliseconds for a suite and the end of its process: the longest suite takes a twelfth of it. */
const LIMIT = 300_000;
const NOBODY = 65_534;
/** The folders that scripts/packages.mjs installs. */
const INSTALLED = ['test', 'scripts'].map((folder) => join(root, folder, 'node_modules'));

const PARTS = {
  busy: {
    title: `three times beside ${availableParallelism()} processes that burn a core each`,
    run() {
      const burn = `const parent = process.ppid; while (process.ppid === parent) for (let i = 0; i < 1e8; i++);`;
      const burners = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', burn], { stdio: 'ignore' }));
      try {
        return [1, 2, 3].every(() => succeeds(tests));
      } finally {
        for (const burner of burners) burner.kill('SIGKILL');
      }
    },
  },
  uptime: {
    title: `on a machine that has been up for ${UPTIME} s`,
    obstacle: () =>
      spawnSync('unshare', ['--time', '--boottime', '1', 'true']).status === 0
        ? undefined
        : 'this kernel or user may not make a time namespace',
    run() {
      const offset = UPTIME - Number(readFileSync('/proc/uptime', 'utf8').split('.')[0]);
      return succeeds(['unshare', '--time', '--fork', '--kill-child', '--boottime', offset, '--monotonic', offset, ...tests]);
    },
  },
  locale: {
    title: 'in another time zone and locale',
    run: () => succeeds(tests, { env: { ...process.env, TZ: 'Pacific/Kiritimati', LC_ALL: 'tr_TR.UTF-8' } }),
  },
  alone: {
    title: `each suite alone, in a process that ends by itself within ${LIMIT / 1000} s`,
    run: () =>
      suitesOfTier('first').filter((suite) => !succeeds([...tests, suite], { timeout: LIMIT, killSignal: 'SIGKILL' })).length === 0,
  },
  user: {
    title: 'as a user who is not root',
    run: () => (isRoot ? asNobody() : succeeds(tests)),
  },
};

function succeeds([command, ...args], options = {}) {
  return spawnSync(command, args.map(String), { cwd: root, stdio: 'inherit', ...options }).status === 0;
}

/** In a copy that belongs to nobody, with links to the packages. */
function asNobody() {
  const home = mkdtempSync(join(tmpdir(), 'sure-'));
  try {
    const copy = join(home, 'copy');
    for (const name of readdirSync(root)) {
      if (!['node_modules', '.git', 'coverage'].includes(name))
        cpSync(join(root, name), join(copy, name), {
          recursive: true,
          preserveTimestamps: true,
          verbatimSymlinks: true,
          filter: (path) => !INSTALLED.includes(path),
        });
    }
    for (const path of INSTALLED) if (existsSync(path)) symlinkSync(path, join(copy, relative(root, path)));
    mkdirSync(join(copy, 'node_modules'));
    for (const name of readdirSync(join(root, 'node_modules'))) {
      if (name !== '.cache') symlinkSync(join(root, 'node_modules', name), join(copy, 'node_modules', name));
    }
    spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, home]);
    chownSync(home, NOBODY, NOBODY);
    const temporary = join(home, 'tmp');
    mkdirSync(temporary);
    chownSync(temporary, NOBODY, NOBODY);
    const env = { ...process.env, HOME: home, TMPDIR: temporary, USER: 'nobody', LOGNAME: 'nobody' };
    return succeeds(tests, { cwd: copy, env, uid: NOBODY, gid: NOBODY });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const wanted = process.argv.slice(2);
for (const name of wanted)
  if (!Object.hasOwn(PARTS, name)) throw new Error(`Unknown part '${name}'. Known: ${Object.keys(PARTS).join(', ')}`);
buildIfChanged();
const outcomes = Object.entries(PARTS)
  .filter(([name]) => wanted.length === 0 || wanted.includes(name))
  .map(([name, { title, obstacle, run }]) => {
    const reason = obstacle?.();
    if (reason) return [name, `not run: ${reason}`];
    console.log(`\n=== ${name}: ${title}`);
    const start = performance.now();
    return [name, `${run() ? 'passed' : 'FAILED'} after ${Math.round((performance.now() - start) / 1000)} s`];
  });
console.log(`\n${outcomes.map((outcome) => outcome.join(': ')).join('\n')}`);
process.exitCode = outcomes.some(([, outcome]) => outcome.startsWith('FAILED')) ? 1 : 0;
