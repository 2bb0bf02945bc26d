// Runs the workloads side by side with other libraries, and writes results/. `npm run bench -- --help`
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { impostor, lineup, OURS } from './contestants/lineup.mjs';
import { Bench } from './measure/bench.mjs';
import { refuseIfBusy } from './measure/busy.mjs';
import { describeMachine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { sum } from './measure/statistics.mjs';
import { judge } from './report/goals.mjs';
import { goalsOf, tableOf } from './report/table.mjs';
import { write, writePages } from './report/write.mjs';

const WORKLOADS = ['w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7', 'w8'];

const HELP = `npm run bench -- [${WORKLOADS.join('] [')}] [options]

  --quick          to judge a change: fewer rounds against those that the goals name, up to a minute for each workload; writes nothing
  --rounds <n>     rounds of each table
  --only <names>   these contestants, separated by commas: ${lineup.map(({ name }) => name).join(',')}
  --retry <ms>     one delay between two tries for all that poll
  --no-give-up     waits until the cap for those that are far from done (W6)
  --busy           measures on a busy machine, too, and says so in the results
  --report         measures nothing; writes the pages anew from the results that are there
  --check          runs a contestant that locks nothing, and fails unless each workload catches it; writes nothing`;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string' },
    retry: { type: 'string' },
    'no-give-up': { type: 'boolean', default: false },
    busy: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const unknown = positionals.filter((name) => !WORKLOADS.includes(name));
if (flags.help || unknown.length > 0) {
  console.log(unknown.length > 0 ? `Unknown workload ${unknown.join(', ')}.\n\n${HELP}` : HELP);
  process.exit(unknown.length > 0 ? 1 : 0);
}

if (flags.report) {
  await writePages();
  process.exit();
}

// A signal alone would leave the started processes behind.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
installContestants();
if (!flags.check) await refuseIfBusy();
const redis = await startRedis();
const started = performance.now();
let isCaught = true;
for (const workload of positionals.length > 0 ? positionals : WORKLOADS) await measure(workload);
redis.stop();
console.log(`${Math.round((performance.now() - started) / 1000)} s`);
process.exit(isCaught ? 0 : 1);

async function measure(workload) {
  const begun = performance.now();
  const machine = await describeMachine(redis);
  const { title, run } = await import(`./workloads/${workload}.mjs`);
  const bench = new Bench({
    redis,
    contestants: contestants(workload),
    quick: flags.quick || flags.check,
    rounds: numberOf('rounds') ?? (flags.check ? 1 : undefined),
    retry: numberOf('retry'),
    giveUp: !flags['no-give-up'],
    log: (line) => console.log(line),
  });
  await run(bench);
  console.log(`${workload}: ${Math.round((performance.now() - begun) / 1000)} s`);
  if (flags.check) return check(bench.tables);
  const { tables, quick } = bench;
  for (const table of tables) console.log(`\n${tableOf(table)}`);
  console.log(goalsOf(judge(tables, quick)));
  if (!quick) await write(workload, { workload, title, machine, retry: bench.retry, tables });
}

/** A workload that does not catch a contestant that locks nothing checks nothing. */
function check(tables) {
  for (const { id, network, rows } of tables) {
    const overlaps = sum(rows[0].rounds.map((round) => round.overlaps ?? 0));
    console.log(`${overlaps > 0 ? 'caught' : 'NOT CAUGHT'}  ${id}, ${network}: ${overlaps} overlaps`);
    if (overlaps === 0) isCaught = false;
  }
}

function contestants(workload) {
  if (flags.check) return [impostor];
  const all = lineup.filter(({ quick }) => !flags.quick || quick?.includes(workload)).map(({ name }) => name);
  const only = flags.only?.split(',') ?? all;
  const missing = only.filter((name) => !lineup.some((contestant) => contestant.name === name));
  if (missing.length > 0) throw new Error(`Unknown contestant ${missing.join(', ')}.`);
  return lineup.filter(({ name }) => name === OURS || only.includes(name));
}

function numberOf(name) {
  if (flags[name] === undefined) return undefined;
  const value = Number(flags[name]);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number of at least 1.`);
  return value;
}

/** The others are no dependencies of this package, so the first run installs them. */
function installContestants() {
  const folder = fileURLToPath(new URL('contestants/', import.meta.url));
  if (existsSync(`${folder}node_modules`)) return;
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--prefix', folder], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error('The libraries to compare with could not be installed.');
}
