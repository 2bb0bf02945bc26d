// Finds the real servers that the tests need. Where there is none, and it may (root on Debian or Ubuntu), it says so and installs a package that has the program, without a started service.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  copyFileSync,
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {object} Service a server that tests start
 * @property {string} apt the package to install here
 * @property {string} package the package to tell the reader of
 * @property {string} brew
 * @property {string} [variable] of the environment: the path of another program, which is used in its place
 * @property {string} [image] of Docker, for where there is no local server
 * @property {string} [program] the name of the program, where it is another
 * @property {string[]} [beside] programs that must be in the same folder
 * @property {string[]} [folders] where it may be besides the PATH; a `*` stands for any name, the last of them is taken first
 * @property {string[]} [without] files of the package that are not unpacked, because they start it
 * @property {(apt: Function) => void} [install] in place of `apt-get install`
 */

/** @type {Record<string, Service>} */
const services = {
  // Debian's redis-server package is a service around a program of redis-tools, which acts by the name that it is called by.
  'redis-server': {
    apt: 'redis-tools',
    program: 'redis-check-rdb',
    package: 'redis-server',
    brew: 'redis',
    variable: 'REDIS_SERVER',
    image: 'redis:7-alpine',
  },
  postgres: {
    apt: 'postgresql',
    package: 'postgresql',
    brew: 'postgresql@17',
    beside: ['initdb', 'pg_basebackup'],
    folders: ['/usr/lib/postgresql/*/bin', '/usr/pgsql-*/bin', '/opt/homebrew/opt/postgresql*/bin', '/usr/local/opt/postgresql*/bin'],
    install: withoutCluster,
  },
  mariadbd: { apt: 'mariadb-server-core', package: 'mariadb-server', brew: 'mariadb', folders: ['/usr/libexec'] },
  pgbouncer: {
    apt: 'pgbouncer',
    package: 'pgbouncer',
    brew: 'pgbouncer',
    without: ['/etc/init.d/pgbouncer', '/lib/systemd/system/pgbouncer.*', '/usr/lib/systemd/system/pgbouncer.*'],
  },
};

/** The servers that the suites of one store start. */
export const serversOf = {
  redis: ['redis-server'],
  postgres: ['postgres', 'pgbouncer'],
  mysql: ['mariadbd'],
  file: [],
  memory: [],
  quorum: ['redis-server', 'postgres'],
};

/**
 * @param {keyof typeof services} name
 * @returns {Promise<{ kind: 'local', command: string } | { kind: 'docker', image: string }>} how to launch it
 */
export async function ensureService(name) {
  const service = services[name];
  if (!service) throw new Error(`Unknown service '${name}'. Known: ${Object.keys(services).join(', ')}`);
  const chosen = service.variable && process.env[service.variable];
  if (chosen) return { kind: 'local', command: chosen };
  const found = findService(name, service);
  if (found) return { kind: 'local', command: found };
  const trouble = [];
  if (canApt()) {
    console.error(`There is no ${name} on this machine. Installing the package ${service.apt}, which has it; no service is started ...`);
    installWithApt(service, trouble);
    const installed = findService(name, service);
    if (installed) return { kind: 'local', command: installed };
  }
  if (service.image && canDocker()) return { kind: 'docker', image: service.image };
  throw new Error(howToInstall(name, service, trouble));
}

function findService(name, { program, beside = [], folders = [] }) {
  const found = findCommand(name, folders) ?? (program && namedAs(name, program));
  if (!found || beside.length === 0) return found;
  const real = realpathSync(found);
  return beside.every((other) => isExecutable(join(dirname(real), other))) ? real : undefined;
}

function findCommand(name, more = []) {
  const onPath = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const folders = [...onPath, '/usr/bin', '/usr/local/bin', '/usr/sbin', ...more.flatMap(foldersLike)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The folders that a pattern with one `*` means, the highest version first. */
function foldersLike(pattern) {
  if (!pattern.includes('*')) return [pattern];
  const [, parent, before, after, rest] = /^(.*)\/([^/*]*)\*([^/]*)(.*)$/.exec(pattern);
  let names;
  try {
    names = readdirSync(parent);
  } catch {
    return [];
  }
  return names
    .filter((name) => name.startsWith(before) && name.endsWith(after))
    .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
    .map((name) => join(parent, name + rest));
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

function installWithApt(service, trouble) {
  // Where the package lists cannot be had, those of before may do.
  const apt = (...args) => {
    const run = spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (run.status !== 0) trouble.push(`apt-get failed: ${run.error?.message ?? `${run.stdout}\n${run.stderr}`.trim()}`);
  };
  const leftOut = (service.without ?? []).flatMap((file) => ['-o', `DPkg::Options::=--path-exclude=${file}`]);
  const install = (...names) => apt(...leftOut, 'install', '-y', '--no-install-recommends', ...names);
  apt('update');
  if (service.install) service.install(install);
  else install(service.apt);
}

/** Debian makes a database cluster of each new version of PostgreSQL, and starts it, unless this file forbids that. */
function withoutCluster(install) {
  const config = '/etc/postgresql-common/createcluster.conf';
  const aside = `${config}.aside`;
  install('postgresql-common');
  if (!existsSync(config)) return; // apt has said why
  copyFileSync(config, aside);
  try {
    appendFileSync(config, '\ncreate_main_cluster = false\n');
    install('postgresql');
  } finally {
    renameSync(aside, config);
  }
}

function howToInstall(name, service, trouble) {
  return [
    `The tests need a real ${name}, and there is none on this machine.`,
    ...trouble,
    'Do one of these:',
    `  Debian, Ubuntu  apt-get install ${service.package}   (run as root, the tests install ${service.apt} themselves, and start no service)`,
    `  macOS           brew install ${service.brew}`,
    ...(service.image ? [`  Docker          start a Docker engine that has 'docker compose'; the tests then run ${service.image}`] : []),
  ].join('\n');
}
