// Packs the library and uses the tarball as its users do: plain Node, ESM and CommonJS, with and without Nest, oldest and newest peers; with `--newest` only these.
import assert from 'node:assert/strict';
import { cp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import mysql from 'mysql2/promise';
import { mariadbUrl, startMariadb } from '../test/support/mariadb-server.ts';
import { startPostgres } from '../test/support/postgres-server.ts';
import { startRedis } from '../test/support/redis-server.ts';
import { installPackages, programOf } from './packages.mjs';
import {
  createApp,
  inTemporaryFolder,
  install,
  name,
  newestPeers,
  oldestPeers,
  pack,
  root,
  run,
  start,
  step,
  supported,
  toInstall,
  values,
} from './packed.mjs';

const compilerOptions = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};
const resolutions = {
  esm: [{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }],
  cjs: [{ module: 'nodenext' }, { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0' }],
};

/** The last versions that are refused. The package must install beside each, because the app has them for other work. */
const oldClients = {
  ioredis: '4.28.5',
  redis: '4.7.1',
  pg: '8.6.0',
  mysql2: '2.2.5',
  'prom-client': '12.0.0',
  '@opentelemetry/api': '1.2.0',
};

/** Bytes of the tarball. */
const LARGEST = 406_000;

let redisUrl, postgres, mariadb;

await inTemporaryFolder('package', async (folder, startServer) => {
  const tarball = await step('npm pack', () => pack(folder));
  await installPackages('scripts');
  await step('publint', () => run(programOf('publint'), ['run', tarball, '--strict'], root));
  await step('attw', () => run(programOf('attw'), [tarball, '--no-definitely-typed', '--no-emoji'], root));
  const redis = await startServer('a private redis-server', () => startRedis({ port: 'free' }));
  redisUrl = `redis://127.0.0.1:${redis.port}`;
  postgres = await startServer('a private Postgres', startPostgres);
  mariadb = await startServer('a private MariaDB', startMariadb);
  const admin = await mysql.createConnection(mariadb.connection);
  await admin.query('CREATE DATABASE shop');
  await admin.end();
  await step('without Nest', () => withoutNest(join(folder, 'core'), tarball));
  await step('beside clients that are too old', () => besideOldClients(join(folder, 'old-clients'), tarball));
  // The declarations of the oldest peers themselves do not pass a compiler of today.
  if (!values.newest)
    await step('with Nest, the oldest peers', () => withNest(join(folder, 'oldest'), tarball, oldestPeers, { skipLibCheck: true }));
  await step('with Nest, the newest peers', () => withNest(join(folder, 'newest'), tarball, newestPeers, { skipLibCheck: false }));
  await step('in a bundle of esbuild, and in one of webpack', () => inBundles(join(folder, 'bundle'), tarball));
});

async function withoutNest(app, tarball) {
  await createApp(app, [tarball]);
  assert.deepEqual(await installedPackages(app), [name], 'the package must bring no dependency along');
  await checkFiles(join(app, 'node_modules', name), tarball);
  for (const store of ['memory', 'file']) await runPrograms(app, 'core', store);
  await commandLineWithoutClient(app);
  await withNodeRedisOnly(`${app}-node-redis`, tarball);

  await install(app, toInstall({ ioredis: newestPeers.ioredis }));
  await runPrograms(app, 'core', 'redis');
  await commandLine(app);
}

/** An app that has `redis`, and neither ioredis nor its types. */
async function withNodeRedisOnly(app, tarball) {
  for (const version of supported.redis.split(' || ').slice(values.newest ? -1 : 0)) {
    const own = `${app}-${version.slice(1)}`;
    await createApp(own, [tarball, `redis@${version}`, '@types/node@20']);
    await node(join(own, 'esm/core-node-redis.mjs'));
    for (const [type, variants] of Object.entries(resolutions)) {
      for (const options of variants) await typeCheck(join(own, type), { ...options, skipLibCheck: false }, ['consumer-node-redis.ts']);
    }
  }
}

/** An app that has them in its package.json, as npm compares each of these with the peers of the package. */
async function besideOldClients(app, tarball) {
  await createApp(app, [tarball], oldClients);
  for (const store of ['memory', 'file']) await runPrograms(app, 'core', store);
  await node(join(app, 'esm/old-clients.mjs'));
}

/** A program as npm has installed it. */
function command(app, program) {
  return join(app, 'node_modules/.bin', program);
}

async function commandLineWithoutClient(app) {
  const { exitCode, all } = await start(command(app, 'ndl'), ['ls', '--url', 'redis://:secret@localhost:1'], app).ended;
  assert.equal(exitCode, 3, all);
  assert.match(all, /npm install ioredis$/);
}

async function commandLine(app) {
  for (const program of ['ndl', name]) assert.match(await run(command(app, program), ['--help'], app), /^ {2}ls \[pattern\]/m);
  assert.equal(await run(command(app, 'ndl'), ['ls', '--url', redisUrl], app), 'No key is held.');
  assert.equal(await run(command(app, 'ndl'), ['run', 'key', '--url', redisUrl, '--', 'echo', 'ran'], app), 'ran');
}

async function withNest(app, tarball, peers, checks) {
  // The programs of the matrix listen on Express.
  const express = `@nestjs/platform-express@${peers['@nestjs/core']}`;
  await createApp(app, [tarball, ...toInstall(peers), express, '@types/node@20']);
  const nest = join(app, 'nest');
  await cp(join(root, 'scripts/matrix/nest'), nest, { recursive: true });
  await cp(join(app, 'node_modules', name), join(nest, 'second/node_modules', name), { recursive: true });
  for (const program of ['http.mjs', 'http.cjs', 'copies.mjs']) await node(join(nest, program));
  for (const store of ['redis', 'postgres', 'mysql']) await runPrograms(app, 'core', store);
  await node(join(app, 'esm/entries.mjs'));
  for (const [type, variants] of Object.entries(resolutions)) {
    for (const options of variants) await typeCheck(join(app, type), { ...options, ...checks });
  }
}

/** A Nest app with a lock, as one file. */
async function inBundles(app, tarball) {
  const { '@nestjs/common': common, '@nestjs/core': core, 'reflect-metadata': metadata, rxjs } = newestPeers;
  const peers = toInstall({ '@nestjs/common': common, '@nestjs/core': core, 'reflect-metadata': metadata, rxjs });
  const webpack = ['webpack', 'webpack-node-externals', 'ts-loader', 'tsconfig-paths-webpack-plugin', 'fork-ts-checker-webpack-plugin'];
  await createApp(app, [tarball, ...peers, '@nestjs/cli@12', ...webpack, 'typescript@~6.0', '@types/node@20']);
  await cp(join(root, 'test/package/in-a-bundle.ts'), join(app, 'src/main.ts'));
  const project = { ...compilerOptions, noEmit: false, module: 'esnext', moduleResolution: 'bundler', rootDir: 'src', outDir: 'dist' };
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions: project, include: ['src'] }));
  await writeFile(join(app, 'nest-cli.json'), '{"sourceRoot":"src"}');
  // What Nest loads only if it is installed.
  const absent = ['@nestjs/microservices', '@nestjs/websockets', '@nestjs/platform-express', 'class-validator', 'class-transformer'];
  const external = absent.flatMap((each) => [`--external:${each}`, `--external:${each}/*`]);
  const oneFile = ['--bundle', '--platform=node', '--format=cjs', '--outfile=out/esbuild.cjs', ...external];
  await run(join(root, 'node_modules/.bin/esbuild'), ['src/main.ts', ...oneFile], app);
  await run(command(app, 'nest'), ['build', '--webpack'], app);
  for (const bundle of ['out/esbuild.cjs', 'dist/main.js']) assert.equal(await run(process.execPath, [bundle], app), 'sold once at a time');
}

/** Declarations that this one leads to, itself included. */
async function typesBehind(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, path] of (await readFile(file, 'utf8')).matchAll(/(?:from |import\()['"](\..+)\.js['"]/g)) {
    await typesBehind(join(dirname(file), `${path}.d.ts`), found);
  }
  return found;
}

/** Expects in the package what was built from lib, and nothing else, and no path of this machine. */
async function checkFiles(installed, tarball) {
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  const { exports } = manifest;
  // The page of the dashboard is one text.
  const sources = (await filesOf(join(root, 'lib'))).filter((file) => file.endsWith('.ts') && !file.startsWith('dashboard/page/'));
  const types = new Set();
  for (const { import: esm, require: cjs } of Object.values(exports))
    for (const entry of esm ? [esm, cjs] : []) await typesBehind(join(installed, entry.types), types);
  // The types of an entry of the ESM build lead to those of the other build.
  const isTyped = (build, file) => types.has(join(installed, `dist/${build}/${file}.d.ts`));
  // The program is started, and never required. The contracts are shipped once.
  const isIn = (build, file) => !file.startsWith(build === 'esm' ? 'testing/store/' : 'cli/');
  const built = sources.map((file) => file.slice(0, -'.ts'.length));
  const expected = [
    ...['package.json', 'README.md', 'README.zh-CN.md', 'LICENSE', 'CHANGELOG.md', 'dist/cjs/package.json'],
    ...['dashboard.json', 'alerts.yml', 'alerts.test.yml'].map((file) => `docs/grafana/${file}`),
    ...['collection.json', 'package.json', 'nest-add/schema.json'].map((file) => `dist/schematics/${file}`),
    ...['bootstrap', 'dependencies', 'index', 'root-module', 'source'].map((file) => `dist/schematics/nest-add/${file}.js`),
    ...['esm', 'cjs'].flatMap((build) =>
      built.flatMap((file) => [
        ...(isIn(build, file) ? [`dist/${build}/${file}.js`] : []),
        ...(isTyped(build, file) ? [`dist/${build}/${file}.d.ts`] : []),
      ]),
    ),
    ...['esm', 'cjs'].map((build) => `dist/${build}/stores/redis/clients.cjs`),
  ];
  const packed = await filesOf(installed);
  assert.deepEqual(packed.sort(), expected.sort(), 'the tarball holds other files than it should');
  let bytes = 0;
  for (const file of packed) {
    const text = await readFile(join(installed, file), 'utf8');
    bytes += Buffer.byteLength(text);
    assert.ok(!text.includes(root), `${file} shows the folder that it was built in`);
    assert.ok(!file.endsWith('.d.ts') || !text.includes('@internal'), `${file} publishes a member that is for the library alone`);
  }
  const ofLocks = await typesBehind(join(installed, 'dist/cjs/locks.d.ts'));
  assert.ok(ofLocks.size <= 20, `the types of Locks reach ${ofLocks.size} files, more than 20: ${[...ofLocks].join(', ')}`);
  for (const part of ['scripts', 'devDependencies', 'overrides'])
    assert.ok(!(part in manifest), `package.json has ${part}, which only the repository needs`);
  const readme = await readFile(join(installed, 'README.md'), 'utf8');
  assert.deepEqual(readme.match(/\]\((docs|examples)\/[^)]*\)/g), null, 'README.md has links to files that are not packed');
  const size = (count) => `${(count / 1000).toFixed(0)} kB`;
  const { size: compressed } = await stat(tarball);
  assert.ok(compressed <= LARGEST, `the tarball has ${size(compressed)}, more than ${size(LARGEST)}`);
  console.log(`size    ${size(compressed)} packed, ${size(bytes)} unpacked, ${packed.length} files`);
}

async function installedPackages(app) {
  return (await readdir(join(app, 'node_modules'))).filter((entry) => !entry.startsWith('.'));
}

async function runPrograms(app, program, ...args) {
  await node(join(app, `esm/${program}.mjs`), ...args);
  await node(join(app, `cjs/${program}.cjs`), ...args);
}

function node(program, ...args) {
  return run(process.execPath, [program, ...args], dirname(program), {
    REDIS_URL: redisUrl,
    TEST_POSTGRES: postgres.url,
    TEST_MYSQL: mariadbUrl({ ...mariadb.connection, database: 'shop' }),
  });
}

async function typeCheck(app, options, files = ['consumer.ts', 'fake-locks.ts']) {
  const project = join(app, 'tsconfig.json');
  await writeFile(project, JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, files }));
  await run(join(root, 'node_modules/.bin/tsc'), ['-p', project], root);
}

async function filesOf(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return files.map((file) => relative(directory, file).replaceAll(sep, '/'));
}
