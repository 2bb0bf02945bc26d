// The library as its users get it: packed into a tarball, installed into apps of a temporary folder, and used there by programs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TIME_TO_END = 120_000;

export const root = fileURLToPath(new URL('../', import.meta.url));
export const { name, peerDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));

// `^10.0.0 || ^11.0.0` becomes 10.0.0 for the oldest and ^11.0.0 for the newest.
const peers = (choose) => Object.fromEntries(Object.entries(peerDependencies).map(([peer, range]) => [peer, choose(range.split(' || '))]));
export const oldestPeers = peers((ranges) => ranges[0].slice(1));
export const newestPeers = peers((ranges) => ranges.at(-1));
export const toInstall = (packages) => Object.entries(packages).map(([wanted, version]) => `${wanted}@${version}`);

const running = new Set();
let isOver = false;

/** Runs the check in a folder that goes with it, as do its programs and servers, whether it ends well, badly or by a signal. */
export async function inTemporaryFolder(purpose, check) {
  const folder = await mkdtemp(join(tmpdir(), `${name}-${purpose}-`));
  const servers = [];
  const cleanUp = async () => {
    isOver = true;
    const children = [...running];
    children.forEach(killGroup);
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
    await Promise.all(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
  try {
    await check(folder, servers);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  } finally {
    await cleanUp();
  }
}

export async function pack(folder) {
  await run('npm', ['pack', '--pack-destination', folder], root);
  const [tarball, ...others] = (await readdir(folder)).filter((file) => file.endsWith('.tgz'));
  assert.ok(tarball && others.length === 0);
  return join(folder, tarball);
}

/** A folder with these packages and, as a module of either kind, the programs of test/package. */
export async function createApp(app, packages) {
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

export function install(app, packages) {
  const flags = ['--prefix', app, '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts', '--prefer-offline'];
  return run('npm', ['install', ...flags, ...packages], app);
}

/** The version of a package that an app has. */
export async function installedVersion(app, wanted) {
  return JSON.parse(await readFile(join(app, 'node_modules', wanted, 'package.json'), 'utf8')).version;
}

/** Starts a program, in a group of its own: what an npm or a test runner has started ends with it. `output` is what it has written so far. */
export function start(command, args, cwd, env = {}) {
  if (isOver) throw new Error('The check was ended.');
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  running.add(child);
  const program = { child, output: '', ended: once(child, 'close').finally(() => running.delete(child)) };
  program.ended.catch(() => undefined); // for those that do not wait for it
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (program.output += text));
  return program;
}

/** Resolves to what it wrote; rejects, with all of that, if it fails or does not end by itself. */
export async function run(command, args, cwd, env = {}) {
  const program = start(command, args, cwd, env);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(program.child);
  }, TIME_TO_END);
  try {
    const [code, signal] = await program.ended;
    if (code === 0) return program.output;
    const why = isLate ? `It did not end within ${TIME_TO_END / 1000} seconds.` : `It ended with ${code ?? signal}.`;
    throw new Error([[command, ...args].join(' '), why, program.output].filter(Boolean).join('\n'));
  } finally {
    clearTimeout(timer);
  }
}

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL'); // it has no group any more, or never started
  }
}

export async function step(title, action) {
  const start = performance.now();
  try {
    const result = await action();
    console.log(`ok      ${title} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
    return result;
  } catch (error) {
    throw new Error(`FAILED  ${title}\n${error.message}`, { cause: error });
  }
}
