// Finds the real servers that the tests need. Where there is none, and it may (root on Debian or Ubuntu), it says so and installs a package that has the program and starts no service.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, statSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Debian's redis-server package is a service around a program of redis-tools, which acts by the name that it is called by.
const services = {
  'redis-server': { apt: 'redis-tools', program: 'redis-check-rdb', package: 'redis-server', brew: 'redis', image: 'redis:7-alpine' },
};

/**
 * @param {keyof typeof services} name
 * @returns {Promise<{ kind: 'local', command: string } | { kind: 'docker', image: string }>} how to launch it
 */
export async function ensureService(name) {
  const service = services[name];
  if (!service) throw new Error(`Unknown service '${name}'. Known: ${Object.keys(services).join(', ')}`);
  const found = findCommand(name) ?? namedAs(name, service.program);
  if (found) return { kind: 'local', command: found };
  const trouble = [];
  if (canApt()) {
    console.error(`There is no ${name} on this machine. Installing the package ${service.apt}, which has it and starts no service ...`);
    installWithApt(service.apt, trouble);
    const installed = namedAs(name, service.program);
    if (installed) return { kind: 'local', command: installed };
  }
  if (canDocker()) return { kind: 'docker', image: service.image };
  throw new Error(howToInstall(name, service, trouble));
}

function findCommand(name) {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/bin', '/usr/local/bin', '/usr/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The program under another name, by a link of our own. */
function namedAs(name, program) {
  const found = findCommand(program);
  if (!found) return undefined;
  const folder = fileURLToPath(new URL('../node_modules/.cache/services/', import.meta.url));
  const link = join(folder, name);
  mkdirSync(folder, { recursive: true });
  try {
    symlinkSync(found, link);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  return isExecutable(link) ? link : undefined;
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function canApt() {
  return process.platform === 'linux' && process.getuid?.() === 0 && findCommand('apt-get') !== undefined;
}

function canDocker() {
  return answers('docker', ['compose', 'version']) && answers('docker', ['info']);
}

function answers(command, args) {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;
}

function installWithApt(name, trouble) {
  const apt = (...args) =>
    spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  // Where the package lists cannot be had, those of before may do.
  for (const run of [apt('update'), apt('install', '-y', '--no-install-recommends', name)]) {
    if (run.status !== 0) trouble.push(`apt-get failed: ${run.error?.message ?? `${run.stdout}\n${run.stderr}`.trim()}`);
  }
}

function howToInstall(name, service, trouble) {
  return [
    `The tests need a real ${name}, and there is none on this machine.`,
    ...trouble,
    'Do one of these:',
    `  Debian, Ubuntu  apt-get install ${service.package}   (run as root, the tests install ${service.apt} themselves, which suffices)`,
    `  macOS           brew install ${service.brew}`,
    `  Docker          start a Docker engine that has 'docker compose'; the tests then run ${service.image}`,
  ].join('\n');
}
