// Packs the library and uses the tarball as its users do: plain Node, ESM and CommonJS, with and without Nest, oldest and newest peers.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRedis } from '../test/support/redis-server.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const { name, peerDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));

// `^10.0.0 || ^11.0.0` becomes 10.0.0 for the oldest and ^11.0.0 for the newest.
const peers = (choose) => Object.entries(peerDependencies).map(([peer, range]) => `${peer}@${choose(range.split(' || '))}`);
const oldest = peers((ranges) => ranges[0].slice(1));
const newest = peers((ranges) => ranges.at(-1));

const compilerOptions = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  noEmit: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};
const resolutions = {
  esm: [{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }],
  cjs: [{ module: 'nodenext' }, { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0' }],
};

const folder = await mkdtemp(join(tmpdir(), `${name}-package-`));
let redis;

async function main() {
  const tarball = await step('npm pack', pack);
  await step('publint', () => tool('publint', 'run', tarball, '--strict'));
  await step('attw', () => tool('attw', tarball, '--no-definitely-typed', '--no-emoji'));
  redis = await step('a private redis-server', startRedis);
  await step('without Nest', () => withoutNest(tarball));
  // The declarations of the oldest peers themselves do not pass a compiler of today.
  await step('with Nest, the oldest peers', () => withNest('oldest', tarball, oldest, { skipLibCheck: true }));
  await step('with Nest, the newest peers', () => withNest('newest', tarball, newest, { skipLibCheck: false }));
}

async function pack() {
  await run('npm', ['pack', '--pack-destination', folder], root);
  const [tarball, ...others] = (await readdir(folder)).filter((file) => file.endsWith('.tgz'));
  assert.ok(tarball && others.length === 0);
  return join(folder, tarball);
}

async function withoutNest(tarball) {
  const app = await createApp('core', [tarball]);
  assert.deepEqual(await installedPackages(app), [name], 'the package must bring no dependency along');
  await checkFiles(join(app, 'node_modules', name));
  await runPrograms(app, 'core-memory');

  await install(
    app,
    newest.filter((peer) => peer.startsWith('ioredis@')),
  );
  await runPrograms(app, 'core-redis');
}

async function withNest(title, tarball, peers, checks) {
  const app = await createApp(title, [tarball, ...peers, '@types/node@20']);
  await runPrograms(app, 'nest');
  await runPrograms(app, 'core-redis');
  await node(join(app, 'esm/nest-mixed.mjs'));
  await node(join(app, 'esm/entries.mjs'));
  for (const [type, variants] of Object.entries(resolutions)) {
    for (const options of variants) await typeCheck(join(app, type), { ...options, ...checks });
  }
}

/** What is packed is what was built from lib, its sources for the source maps, and the papers: nothing else, and no path of this machine. */
async function checkFiles(installed) {
  const sources = await filesOf(join(root, 'lib'));
  const built = sources.filter((file) => file.endsWith('.ts')).map((file) => file.slice(0, -'.ts'.length));
  const expected = [
    ...['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'dist/cjs/package.json'],
    ...sources.map((file) => `lib/${file}`),
    ...['esm', 'cjs'].flatMap((build) =>
      built.flatMap((file) => ['.js', '.js.map', '.d.ts', '.d.ts.map'].map((extension) => `dist/${build}/${file}${extension}`)),
    ),
  ];
  const packed = await filesOf(installed);
  assert.deepEqual(packed.sort(), expected.sort(), 'the tarball holds other files than it should');
  assert.deepEqual(
    packed.filter((file) => /\.(spec|test)\./.test(file)),
    [],
    'the tarball holds tests',
  );
  for (const file of packed) {
    const text = await readFile(join(installed, file), 'utf8');
    assert.ok(!text.includes(root), `${file} tells the folder that it was built in`);
  }
}

async function createApp(title, packages) {
  const app = join(folder, title);
  for (const [type, own] of [
    ['esm', 'module'],
    ['cjs', 'commonjs'],
  ]) {
    await cp(join(root, 'test/package'), join(app, type), { recursive: true });
    await writeFile(join(app, type, 'package.json'), JSON.stringify({ private: true, type: own }));
  }
  await writeFile(join(app, 'package.json'), JSON.stringify({ private: true }));
  await install(app, packages);
  return app;
}

function install(app, packages) {
  const flags = ['--prefix', app, '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts', '--prefer-offline'];
  return run('npm', ['install', ...flags, ...packages], app);
}

async function installedPackages(app) {
  return (await readdir(join(app, 'node_modules'))).filter((entry) => !entry.startsWith('.'));
}

async function runPrograms(app, program) {
  await node(join(app, `esm/${program}.mjs`));
  await node(join(app, `cjs/${program}.cjs`));
}

function node(program) {
  return run(process.execPath, [program], folder, { TEST_REDIS: JSON.stringify(redis.connection) });
}

async function typeCheck(app, options) {
  const project = join(app, 'tsconfig.json');
  await writeFile(project, JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, files: ['consumer.ts'] }));
  await tool('tsc', '-p', project);
}

function tool(command, ...args) {
  return run(join(root, 'node_modules/.bin', command), args, root);
}

async function run(command, args, cwd, env = {}) {
  try {
    await promisify(execFile)(command, args, { cwd, env: { ...process.env, ...env }, timeout: 120_000, maxBuffer: 2 ** 26 });
  } catch (error) {
    const called = [command, ...args].join(' ');
    const why = error.killed ? 'It did not end within two minutes.' : `It ended with ${error.code}.`;
    throw new Error([called, why, error.stdout, error.stderr].filter(Boolean).join('\n'), { cause: error });
  }
}

async function filesOf(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return files.map((file) => relative(directory, file).replaceAll(sep, '/'));
}

async function step(title, action) {
  const start = performance.now();
  try {
    const result = await action();
    console.log(`ok      ${title} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
    return result;
  } catch (error) {
    throw new Error(`FAILED  ${title}\n${error.message}`, { cause: error });
  }
}

async function cleanUp() {
  await redis?.stop();
  await rm(folder, { recursive: true, force: true });
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
