// Finds the real servers that the tests need. Those that are missing are installed where that is possible (as root on Debian or Ubuntu), without a started service.
//
//   node scripts/services.mjs --list first faults      the packages that these tiers need and this machine lacks: what a workflow installs
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
import { startsServers } from './imports.mjs';
import { suitesOfTier } from './tiers.mjs';

/**
 * @typedef {object} Service a server that tests start
 * @property {string} apt the package to install here
 * @property {string} package the package to tell the reader of
 * @property {string} brew
 * @property {string} [variable] of the environment: the path of another program, which is used instead
 * @property {string} [image] of Docker, for where there is no local server
 * @property {string} [program] the name of the program, where it is another
 * @property {string[]} [beside] programs that must be in the same folder
 * @property {string[]} [folders] where it may be besides the PATH; a `*` stands for any name, the last of them is taken first
 * @property {string[]} [without] files of the package that are not unpacked, because they start it
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
    variable: 'POSTGRES_SERVER',
    beside: ['initdb', 'pg_basebackup'],
    folders: ['/usr/lib/postgresql/*/bin', '/usr/pgsql-*/bin', '/opt/homebrew/opt/postgresql*/bin', '/usr/local/opt/postgresql*/bin'],
  },
  // Or MySQL, by the variable.
  mariadbd: { apt: 'mariadb-server-core', package: 'mariadb-server', brew: 'mariadb', variable: 'MYSQL_SERVER', folders: ['/usr/libexec'] },
  pgbouncer: {
    apt: 'pgbouncer',
    package: 'pgbouncer',
    brew: 'pgbouncer',
    without: ['/etc/init.d/pgbouncer', '/lib/systemd/system/pgbouncer.*', '/usr/lib/systemd/system/pgbouncer.*'],
  },
  etcd: {
    apt: 'etcd-server',
    package: 'etcd-server',
    brew: 'etcd',
    // A name that begins with ETCD_ would be a setting of etcd's.
    variable: 'SERVER_OF_ETCD',
    without: ['/etc/init.d/etcd', '/lib/systemd/system/etcd.*', '/usr/lib/systemd/system/etcd.*'],
  },
  // A script beside which the jars are; the package needs a JRE.
  zookeeper: {
    apt: 'zookeeper',
    program: 'zkServer.sh',
    package: 'zookeeper',
    brew: 'zookeeper',
    variable: 'ZOOKEEPER_SERVER',
    folders: [
      '/usr/share/zookeeper/bin',
      '/opt/*zookeeper*/bin',
      '/opt/homebrew/opt/zookeeper/libexec/bin',
      '/usr/local/opt/zookeeper/libexec/bin',
    ],
  },
  // No server, but the browser in which the tier `page` looks at the dashboard.
  chromium: { apt: 'chromium', package: 'chromium', brew: 'chromium' },
  // No server, but a program that a suite of the last tier runs.
  promtool: {
    apt: 'prometheus',
    package: 'prometheus',
    brew: 'prometheus',
    without: ['/etc/init.d/prometheus', '/lib/systemd/system/prometheus.*', '/usr/lib/systemd/system/prometheus.*'],
  },
};

/** The servers that the suites of one store start. */
export const serversOf = {
  redis: ['redis-server'],
  postgres: ['postgres', 'pgbouncer'],
  mysql: ['mariadbd'],
  etcd: ['etcd'],
  // It needs Java, so only its own suites have it: see ofSuites.
  zookeeper: [],
  file: [],
  memory: [],
  quorum: ['redis-server', 'postgres'],
};

/** Programs that only these suites start. */
const ofSuites = {
  chromium: /\.page\.spec\.ts/,
  zookeeper: /stores\/(zookeeper(?!\/foreign)|foreign-answers)/,
  promtool: /\/alerts\.spec\.ts/,
};

/** @returns {string[]} what these suites start, or most suites; with the name of a store, no server of another one */
export function servicesOf(suites, store) {
  if (suites && !suites.some(startsServers)) return [];
  const common = store ? serversOf[store] : [...new Set(Object.values(serversOf).flat())];
  return [...common, ...Object.keys(ofSuites).filter((name) => suites?.some((suite) => ofSuites[name].test(suite)))];
}

/** @typedef {{ kind: 'local', command: string } | { kind: 'docker', image: string } | { kind: 'missing', message: string }} Launch how to launch a server */

/**
 * Looks for each of these servers. What is missing is installed where that is possible, unless TEST_INSTALL is `no`.
 *
 * @param {(keyof typeof services)[]} names
 * @returns {Record<string, Launch>}
 */
export function ensureServices(names) {
  const find = (name) => findService(name, services[name]);
  const missing = names.filter((name) => !find(name));
  const isAllowed = process.env.TEST_INSTALL !== 'no';
  const trouble = missing.length > 0 && isAllowed && canApt() ? installWithApt(missing) : [];
  return Object.fromEntries(names.map((name) => [name, find(name) ?? elsewhere(name, isAllowed, trouble)]));
}

function elsewhere(name, isAllowed, trouble) {
  const { image } = services[name];
  if (image && isAllowed && canDocker()) return { kind: 'docker', image };
  return { kind: 'missing', message: howToInstall(name, services[name], trouble) };
}

/** @returns {Launch | undefined} */
function findService(name, { variable, program, beside = [], folders = [] }) {
  const chosen = variable && process.env[variable];
  if (chosen) return { kind: 'local', command: chosen };
  const found = findCommand(name, folders) ?? (program && namedAs(name, program, folders));
  if (!found) return undefined;
  const command = beside.length === 0 ? found : realpathSync(found);
  return beside.every((other) => isExecutable(join(dirname(command), other))) ? { kind: 'local', command } : undefined;
}

function findCommand(name, more = []) {
  const onPath = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const folders = [...onPath, '/usr/bin', '/usr/local/bin', '/usr/sbin', ...more.flatMap(pathsLike)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The paths that a pattern with one `*` means, the highest version first. */
export function pathsLike(pattern) {
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
function namedAs(name, program, folders) {
  const found = findCommand(program, folders);
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

/** Says first what it does. @returns {string[]} what went wrong */
function installWithApt(names) {
  const packages = names.map((name) => services[name].apt);
  console.error(
    `Installing Debian's ${packages.join(', ')}, as the tests start ${names.join(', ')} of their own; no service is started. ` +
      'To do without: npm test -- --no-install (suites that need a missing server then fail).',
  );
  const trouble = [];
  // Where the package lists cannot be had, those of before may do.
  const apt = (...args) => {
    const run = spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (run.status !== 0) trouble.push(`apt-get failed: ${run.error?.message ?? `${run.stdout}\n${run.stderr}`.trim()}`);
  };
  const leftOut = names.flatMap((name) => services[name].without ?? []).flatMap((file) => ['-o', `DPkg::Options::=--path-exclude=${file}`]);
  const install = (...these) => apt(...leftOut, 'install', '-y', '--no-install-recommends', ...these);
  apt('update');
  if (names.includes('postgres')) withoutCluster(install, packages);
  else install(...packages);
  return trouble;
}

/** Debian makes a database cluster of each new version of PostgreSQL, and starts it, unless this file forbids that. */
function withoutCluster(install, packages) {
  const config = '/etc/postgresql-common/createcluster.conf';
  const aside = `${config}.aside`;
  install('postgresql-common');
  if (!existsSync(config)) return; // apt has said why
  copyFileSync(config, aside);
  try {
    appendFileSync(config, '\ncreate_main_cluster = false\n');
    install(...packages);
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [flag, ...tiers] = process.argv.slice(2);
  if (flag !== '--list' || tiers.length === 0) throw new Error('Usage: node scripts/services.mjs --list <tier> …');
  const names = servicesOf(tiers.flatMap(suitesOfTier)).filter((name) => !findService(name, services[name]));
  console.log(names.map((name) => services[name].apt).join(' '));
}
