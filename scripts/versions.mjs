// Runs the suites of a store on each version of its server that Debian's releases have, and prints a table. What passed goes into docs/versions.json
// and from there into docs. It fails for what is there and does not pass: a claimed version that no release has any more is not repeated.
//
//   npm run nightly -- versions [mysql postgres-18 … test/stores/mysql/server.spec.ts …]      no name: all of them; no path: all suites of the store
//   npm run nightly -- versions --folder image mysql      the server in a folder that has the files of a whole system, as `docker export` gives them
//
// It needs Debian with apt, and no right to install: the servers are unpacked into node_modules/.cache with their own libraries, once. ZooKeeper needs
// a Java of this machine.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, parse, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DebianRelease, wrapInPlace } from './debian-packages.mjs';
import { ensureServices, pathsLike } from './services.mjs';
import { writeClaims } from './version-claims.mjs';

/** Releases of Debian, from the first one with Redis 7.0. */
const SUITES = ['bookworm', 'bookworm-backports', 'trixie', 'trixie-backports', 'sid', 'experimental'];
const GUARD = 'test/fence-guard/(clients|isolation|leases)';

/**
 * @typedef {object} Engine a server of which there are versions
 * @property {string[]} packages of Debian, with the number of a release where several can be installed
 * @property {string[]} [jars] packages that are unpacked alone, without what they depend on: no program of theirs is used
 * @property {string[]} places of its program in a folder; a `*` stands for any name
 * @property {string[]} [beside] programs that it looks for beside itself
 * @property {string} variable of the environment that names the program
 * @property {string} store whose suites run
 * @property {string[]} tests patterns of their paths
 */

const ofRedis = (name) => ({
  packages: [`${name}-tools`],
  places: [`usr/bin/${name}-server`, `usr/local/bin/${name}-server`],
  variable: 'REDIS_SERVER',
  store: 'redis',
  // The contracts beside the folder, too. Interleavings have no server.
  tests: ['test/stores/redis', 'test/stores/quorum/(?!interleavings)', 'test/doctor/redis.spec.ts', GUARD],
});
const ofMysql = (name, program) => ({
  packages: [`${name}-server-core`],
  places: [`usr/sbin/${program}`],
  variable: 'MYSQL_SERVER',
  store: 'mysql',
  tests: ['test/stores/mysql', 'test/doctor/mariadb.spec.ts', GUARD],
});

/** @type {Record<string, Engine>} */
const ENGINES = {
  redis: ofRedis('redis'),
  valkey: ofRedis('valkey'),
  redict: ofRedis('redict'),
  mysql: ofMysql('mysql', 'mysqld'),
  mariadb: ofMysql('mariadb', 'mariadbd'),
  postgres: {
    packages: [15, 16, 17, 18, 19].map((release) => `postgresql-${release}`),
    places: ['usr/lib/postgresql/*/bin/postgres'],
    beside: ['initdb', 'pg_basebackup', 'pg_ctl'],
    variable: 'POSTGRES_SERVER',
    store: 'postgres',
    tests: ['test/stores/postgres', 'test/doctor/postgres.spec.ts', GUARD],
  },
  etcd: {
    packages: ['etcd-server'],
    places: ['usr/bin/etcd', 'usr/local/bin/etcd'],
    variable: 'SERVER_OF_ETCD',
    store: 'etcd',
    tests: ['test/stores/etcd'],
  },
  zookeeper: {
    packages: ['zookeeper'],
    jars: ['libzookeeper-java', 'libslf4j-java', 'liblog4j1.2-java', 'libdropwizard-metrics-java', 'libsnappy-java'].concat([
      'libnetty-java',
      'libnetty-buffer-java',
      'libnetty-common-java',
      'libcommons-cli-java',
      'libcommons-io-java',
    ]),
    places: ['usr/share/zookeeper/bin/zkServer.sh', 'apache-zookeeper-*/bin/zkServer.sh'],
    variable: 'ZOOKEEPER_SERVER',
    store: 'zookeeper',
    tests: ['test/stores/zookeeper', 'test/doctor/zookeeper.spec.ts'],
  },
};
/** Jars that ZooKeeper needs of the folder of all jars: of several that write a log, one. */
const JARS = /^(zookeeper(-jute)?|slf4j-(api|log4j12)|log4j-1\.2|metrics-core|snappy-java|netty-[a-z-]+|commons-(cli|io))\.jar$/;

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'node_modules/.cache/versions');
const { values: flags, positionals } = parseArgs({ options: { folder: { type: 'string' } }, allowPositionals: true });
const paths = positionals.filter((argument) => argument.includes('/'));
const names = positionals.filter((argument) => !argument.includes('/'));
const isWanted = (name) =>
  names.length === 0 || names.some((one) => name === one || name.startsWith(`${one}-`) || name.startsWith(`${one}.`));
const unknown = names.filter((name) => !ENGINES[name.split('-')[0]]);
if (unknown.length > 0)
  throw new Error(`Unknown: ${unknown.join(', ')}. Known: ${Object.keys(ENGINES).join(', ')}, each also with a version.`);

const { servers, missing } = flags.folder === undefined ? findServers() : { servers: inFolder(resolve(flags.folder)), missing: [] };
for (const reason of missing) console.log(`Not to be had: ${reason}`);
if (servers.length === 0) throw new Error('There is no such server.');
const table = {};
const runs = [];
for (const server of servers) {
  console.log(`${server.engine} ${server.version} (${server.from}) …`);
  const { row, failures } = await runTests(server);
  table[`${server.engine} ${server.version}`] = { from: server.from, ...row };
  for (const failure of failures) console.log(`  FAILED  ${failure}`);
  const passed = row.passed > 0 && row.failed === 0;
  runs.push({ ...server, passed });
  if (!passed) process.exitCode = 1;
}
console.table(table);
if (flags.folder === undefined && paths.length === 0) writeClaims(root, Object.keys(ENGINES), runs);

/** One of each version, of the oldest release of Debian that has it. */
function findServers() {
  const found = new Map();
  const missing = [];
  const attempt = (what, work) => {
    try {
      work();
    } catch (error) {
      missing.push(`${what} (${error.message})`);
    }
  };
  for (const suite of SUITES) {
    const release = new DebianRelease(suite, cache);
    attempt(`the packages of ${suite}`, () => {
      release.update();
      const versions = release.versionsOf(Object.values(ENGINES).flatMap(({ packages }) => packages));
      for (const [engine, { packages, jars }] of Object.entries(ENGINES)) {
        for (const each of packages) {
          attempt(`${each} of ${suite}`, () => {
            const ofPackage = versions.get(each);
            // `7.0.15` of 5:7.0.15-1~deb12u1
            const version = /^(?:\d+:)?([\d.]+\d)/.exec(ofPackage ?? '')?.[1];
            const name = `${engine}-${version}`;
            if (!version || found.has(name) || !isWanted(name)) return;
            // Not each release has all of them.
            const folder = release.unpack(each, ofPackage, jars && [...release.versionsOf(jars).keys()]);
            found.set(name, { engine, version, from: suite, command: prepare(engine, folder) });
          });
        }
      }
    });
  }
  const wrong = [...found.values()].filter(({ engine, version, command }) => versionOf(engine, command) !== version);
  if (wrong.length > 0) throw new Error(`These say that they are another version: ${wrong.map(({ command }) => command).join(', ')}`);
  // By the engine, and the oldest version first.
  const order = ({ engine, version }) => `${1000 + Object.keys(ENGINES).indexOf(engine)} ${version}`;
  const servers = [...found.values()].sort((a, b) => order(a).localeCompare(order(b), 'en', { numeric: true }));
  return { servers, missing };
}

function inFolder(folder) {
  if (folder === parse(folder).root) throw new Error('--folder changes the files there: it must be a copy.');
  return names.map((engine) => {
    const command = prepare(engine, folder);
    return { engine, version: versionOf(engine, command), from: basename(folder), command };
  });
}

/** Makes the program of an unpacked folder one that can be started. @returns {string} its path */
function prepare(engine, folder) {
  const { places, beside = [], jars } = ENGINES[engine];
  // Debian's server is a program of the package of tools, which acts by the name that it is called by.
  for (const place of places) linkTo(join(folder, place.replace('-server', '-check-rdb')), join(folder, place));
  const place = places.flatMap((pattern) => pathsLike(join(folder, pattern))).find(existsSync);
  if (!place) throw new Error(`${folder} has none of ${places.join(', ')}`);
  if (!jars) return wrapInPlace(folder, [place, ...beside.map((other) => join(dirname(place), other))])[0];
  const [all, own] = [join(folder, 'usr/share/java'), join(dirname(dirname(place)), 'lib')];
  mkdirSync(own, { recursive: true });
  for (const jar of existsSync(all) ? readdirSync(all).filter((name) => JARS.test(name)) : []) linkTo(join(all, jar), join(own, jar));
  return place;
}

function linkTo(target, link) {
  if (target !== link && existsSync(target) && !existsSync(link)) symlinkSync(target, link);
}

/** The version that the server says itself, or that is in the name of ZooKeeper's jar. */
function versionOf(engine, command) {
  if (engine === 'zookeeper') {
    const lib = join(dirname(dirname(command)), 'lib');
    // Beside a jar or its link there is one with the version in its name.
    const folders = new Set(readdirSync(lib).map((name) => dirname(realpathSync(join(lib, name)))));
    return [...folders].flatMap((folder) => readdirSync(folder)).flatMap((jar) => /^zookeeper-(\d.*)\.jar$/.exec(jar)?.[1] ?? [])[0];
  }
  const { stdout, stderr, status } = spawnSync(command, ['--version'], { encoding: 'utf8' });
  const [, version] = /(?:v=|Ver |\) |Version: )(\d+(?:\.\d+)+)/.exec(stdout ?? '') ?? [];
  if (status !== 0 || !version) throw new Error(`${command} --version: ${stderr || stdout || `status ${status}`}`.trim());
  return version;
}

async function runTests({ engine, version, command }) {
  const { variable, store, tests } = ENGINES[engine];
  if (engine === 'zookeeper') ensureServices(['zookeeper']); // its Java
  const report = join(cache, `${engine}-${version}.json`);
  mkdirSync(cache, { recursive: true });
  rmSync(report, { force: true });
  const jest = fileURLToPath(import.meta.resolve('jest/bin/jest'));
  const args = ['--silent', '--json', '--outputFile', report, '--testPathPatterns', ...(paths.length > 0 ? paths : tests)];
  const env = { ...process.env, TEST_STORE: store, [variable]: command };
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
  const failures = testResults.flatMap(({ name: suite, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    return [...failed, ...(assertionResults.length === 0 ? [`${suite}: ${message.split('\n')[0]}`] : [])];
  });
  return { row: { passed, failed: numFailedTests + broken, seconds: Math.round((performance.now() - start) / 1000) }, failures };
}
