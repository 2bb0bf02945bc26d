// The tests: `node scripts/test.mjs [--tier quick|first|check|integrations|faults|nightly|page|all] [--store postgres] [--client node-redis] [--no-install] [paths …] [-- arguments of jest …]`.
// With a store only its suites run, and only its servers start. With a client, the suites of Redis run over that package.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildIfChanged } from './build-if-changed.mjs';
import { serversOf } from './services.mjs';
import { suitesOfTier, TIERS } from './tiers.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const CHOICES = {
  tier: TIERS,
  store: Object.keys(serversOf),
  client: ['ioredis', 'node-redis', 'node-redis-6'],
};
const text = { type: 'string' };
const options = { tier: { ...text, default: 'first' }, store: text, client: text, 'no-install': { type: 'boolean', default: false } };

/** Ends the process with 2 where something is not known. */
function refuse(message) {
  console.error(message);
  process.exit(2);
}

function readArguments(args) {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  // Jest's own options can come without the `--`, too.
  const isOurs = (arg) => !arg.startsWith('-') || Object.keys(options).some((name) => arg === `--${name}` || arg.startsWith(`--${name}=`));
  const [ours, jest] = [args.slice(0, end).filter(isOurs), [...args.slice(0, end).filter((arg) => !isOurs(arg)), ...args.slice(end + 1)]];
  const { values, positionals } = parseArgs({ args: ours, options, allowPositionals: true });
  for (const [name, known] of Object.entries(CHOICES)) {
    if (values[name] !== undefined && !known.includes(values[name]))
      refuse(`Unknown ${name} '${values[name]}'. Known: ${known.join(', ')}`);
  }
  const store = values.store ?? (values.client && 'redis');
  if (values.client && store !== 'redis') refuse(`A client is one of redis, not of ${store}.`);
  return { ...values, store, words: positionals, jest };
}

/** The suites of a tier, and of a store. */
function suitesOf({ store, words }, tier) {
  const isOfStore = (suite) => store === undefined || new RegExp(`^test/stores/${store}[-/.]`).test(suite);
  const isMeant = (suite) => words.length === 0 || words.some((word) => suite.includes(word));
  return suitesOfTier(tier).filter((suite) => isOfStore(suite) && isMeant(suite));
}

/** Returns the seconds of the processes that this one has started, and of theirs, if the system counts them. */
function processorSeconds() {
  if (!existsSync('/proc/self/stat')) return undefined;
  // proc(5): the 16th and 17th field, in hundredths of a second. The second one, a name, can have spaces.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

const given = readArguments(process.argv.slice(2));
const suites = suitesOf(given, given.tier);
if (suites.length === 0) {
  const elsewhere = TIERS.filter((tier) => tier !== 'all' && suitesOf(given, tier).length > 0);
  refuse(`There is no such suite in the tier ${given.tier}. ${elsewhere.map((tier) => `There is with --tier ${tier}.`).join(' ')}`);
}
const env = {
  ...process.env,
  ...(given.store && { TEST_STORE: given.store }),
  ...(given.client && { REDIS_CLIENT: given.client }),
  ...(given['no-install'] && { TEST_INSTALL: 'no' }),
};
// Only these run what is built.
if (suites.some((suite) => /^test\/(e2e|tutorial)/.test(suite))) buildIfChanged();
const jest = fileURLToPath(import.meta.resolve('jest/bin/jest'));
const reporter = suites.length > 1 ? ['--reporters=<rootDir>/test/support/progress-reporter.mjs'] : [];
const args = [jest, '--filter', './test/support/chosen-suites.cjs', ...reporter, ...given.jest];
const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', cwd: root, env: { ...env, TEST_SUITES: suites.join(' ') } });
const used = processorSeconds();
if (used !== undefined) console.error(`Processor: ${Math.round(used)} s`);
process.exit(status ?? 1);
