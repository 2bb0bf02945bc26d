// The packages that only some suites or some scripts need are not installed by `npm ci`, but here, when they are needed: those of test/package.json and
// those of scripts/package.json. `node scripts/packages.mjs scripts typedoc --help` installs those of scripts, and runs a program of them.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Installs what the lock file of this folder names, unless it is installed. If two processes ask at the same time, one installs and the other waits. */
export async function installPackages(folder) {
  const at = (file) => join(root, folder, file);
  const lock = readFileSync(at('package-lock.json'), 'utf8');
  // npm removes node_modules before it installs, so this copy is there only after an installation that has ended.
  const copy = at('node_modules/.installed.json');
  const isInstalled = () => read(copy) === lock;
  const busy = at('.installing');
  while (!isInstalled()) {
    if (!begin(busy)) await setTimeout(100);
    else
      try {
        if (!isInstalled()) await npmCi(join(root, folder));
        writeFileSync(copy, lock);
      } finally {
        rmSync(busy, { force: true });
      }
  }
}

async function npmCi(cwd) {
  console.error(`Installing the packages of ${relative(root, cwd)}/package.json.`);
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const [code] = await once(spawn('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] }), 'exit');
  if (code !== 0) throw new Error(`npm ci has failed in ${cwd}.`);
}

/** Whether this process is the one that installs: the file has its id. That of a process that is gone does not count. */
function begin(busy) {
  try {
    writeFileSync(busy, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    const other = Number(read(busy));
    if (other && !isAlive(other)) rmSync(busy, { force: true });
    return false;
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** A program that the packages of scripts bring. */
export const programOf = (name) => join(root, 'scripts/node_modules/.bin', name);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, program, ...args] = process.argv.slice(2);
  await installPackages(folder);
  if (program) process.exitCode = spawnSync(programOf(program), args, { stdio: 'inherit', cwd: root }).status ?? 1;
}
