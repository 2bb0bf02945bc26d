// The library as its users get it: packed into a tarball, installed into apps of a temporary folder, and used there by programs.
import { execa } from 'execa';
import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Explained, withLeftovers } from './leftovers.mjs';

const TIME_TO_END = 120_000;

export const root = fileURLToPath(new URL('../', import.meta.url));
export const { name, peerDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
export const supported = JSON.parse(await readFile(new URL('supported-clients.json', import.meta.url), 'utf8'));
/** Versions of the packages that are used with this one. npm lets an app have any version of those that are clients. */
const ranges = { ...peerDependencies, ...supported };
/** The arguments of each check. */
export const { values, positionals } = parseArgs({
  options: { tarball: { type: 'string' }, newest: { type: 'boolean' } },
  allowPositionals: true,
});

// `^10.0.0 || ^11.0.0` becomes 10.0.0 for the oldest and ^11.0.0 for the newest.
const peers = (choose) => Object.fromEntries(Object.entries(ranges).map(([peer, range]) => [peer, choose(range.split(' || '))]));
export const oldestPeers = peers((ranges) => ranges[0].slice(1));
export const newestPeers = peers((ranges) => ranges.at(-1));
export const toInstall = (packages) => Object.entries(packages).map(([wanted, version]) => `${wanted}@${version}`);

const over = new AbortController();
const running = new Set();

/** Runs the check in a folder that goes with it, as do its programs and servers. */
export function inTemporaryFolder(purpose, check) {
  return withLeftovers(async (leftovers) => {
    const folder = await mkdtemp(join(tmpdir(), `${name}-${purpose}-`));
    leftovers.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    leftovers.add(() => (over.abort(), Promise.all(running)));
    return check(folder, (title, start) => leftovers.addServer(step(title, start)));
  });
}

/** The tarball that `--tarball` names, else one packed now. */
export async function pack(folder) {
  if (values.tarball) return resolve(values.tarball);
  await run('npm', ['run', 'build'], root);
  await run('npm', ['pack', '--pack-destination', folder], root);
  const [tarball, ...others] = (await readdir(folder)).filter((file) => file.endsWith('.tgz'));
  assert.ok(tarball && others.length === 0);
  return join(folder, tarball);
}

/**
 * A folder with these packages and, as a module of either kind, the programs of test/package.
 *
 * @param dependencies that it has before.
 */
export async function createApp(app, packages, dependencies = {}) {
  for (const [folder, type] of Object.entries({ esm: 'module', cjs: 'commonjs' })) {
    await cp(join(root, 'test/package'), join(app, folder), { recursive: true });
    await writeFile(join(app, folder, 'package.json'), JSON.stringify({ private: true, type }));
  }
  await writeFile(join(app, 'package.json'), JSON.stringify({ private: true, dependencies }));
  await install(app, packages);
}

export function install(app, packages) {
  const flags = ['--prefix', app, '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts', '--prefer-offline'];
  return run('npm', ['install', ...flags, ...packages], app);
}

/** Starts a program, which ends with the check at the latest. `output` is what it has written so far. */
export function start(command, args, cwd, env = {}, timeout = 0) {
  over.signal.throwIfAborted();
  const options = { cwd, env, timeout, stdin: 'ignore', all: true, reject: false, cancelSignal: over.signal, forceKillAfterDelay: 1000 };
  const child = execa(command, args, options);
  const ended = child.finally(() => running.delete(ended));
  running.add(ended);
  const program = { child, output: '', ended };
  child.all.setEncoding('utf8').on('data', (text) => (program.output += text));
  return program;
}

/** Resolves to what it wrote; rejects, with all of that, if it fails or does not end by itself. */
export async function run(command, args, cwd, env) {
  const { failed, shortMessage, all } = await start(command, args, cwd, env, TIME_TO_END).ended;
  if (failed) throw new Error(`${shortMessage}\n${all}`);
  return all;
}

export async function step(title, action) {
  const start = performance.now();
  try {
    const result = await action();
    console.log(`ok      ${title} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
    return result;
  } catch (error) {
    throw new Explained(`FAILED  ${title}\n${error.message}`, { cause: error });
  }
}
