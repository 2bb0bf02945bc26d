// Runs the workloads side by side with other libraries, and writes results/; or another benchmark of this folder. `npm run bench -- --help`
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readArguments } from '../scripts/arguments.mjs';
import { impostor, lineup, OURS } from './contestants/lineup.mjs';
import { Bench } from './measure/bench.mjs';
import { refuseIfBusy } from './measure/busy.mjs';
import { describeMachine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { sum } from './measure/statistics.mjs';
import { judge } from './report/goals.mjs';
import { goalsOf, tableOf } from './report/table.mjs';
import { write, writePages } from './report/write.mjs';
import { w3, w6 } from './workloads/crowd.mjs';
import { w7, w8 } from './workloads/shared.mjs';
import { w1 } from './workloads/w1.mjs';
import { w2 } from './workloads/w2.mjs';
import { w4 } from './workloads/w4.mjs';
import { w5 } from './workloads/w5.mjs';

const WORKLOADS = { w1, w2, w3, w4, w5, w6, w7, w8 };
/** Programs of their own, each with options of its own. */
const OTHERS = {
  decorator: 'a decorated call on the memory store over a bare one',
  telemetry: 'CPU and bytes of a pair with metrics and traces over one without',
  builds: 'W2 with this build next to former ones, for CPU that a change adds',
  startup: 'what 1,000 decorated methods add to the start of an app',
  list: '`locks.list()` among ten million other keys',
  bare: 'pairs on Postgres, MariaDB and files over what they must cost at least',
  stores: 'Postgres, MariaDB and files beside Redis; --write keeps the results',
  many: 'one key that hundreds of processes want: to read, or one after the other',
  cluster: 'a Redis Cluster of three nodes over one server; --write keeps the results',
  quorum: 'three servers as a quorum over one of them; --write keeps the results',
};

const USAGE = `npm run bench -- [${Object.keys(WORKLOADS).join('] [')}] [options]

  --quick          to judge a change: fewer rounds against those that the goals name, up to a minute for each workload; writes nothing
  --rounds <n>     rounds of each table
  --only <names>   these contestants, separated by commas: ${lineup.map(({ name }) => name).join(',')}
  --retry <ms>     one delay between two tries for all that poll
  --no-give-up     waits until the cap for those that are far from done (W6)
  --busy           measures on a busy machine, too, and says so in the results
  --report         measures nothing; writes the pages again from the results that are there
  --check          runs a contestant that locks nothing, and fails unless each workload catches it; writes nothing

npm run bench -- <name> [options]          the options of each: --help
${Object.entries(OTHERS)
  .map(([name, what]) => `  ${name.padEnd(16)} ${what}`)
  .join('\n')}`;

const [other] = process.argv.splice(2, Object.hasOwn(OTHERS, process.argv[2]) ? 1 : 0);
if (other === 'quorum') installContestants();
if (other) await import(`./${other}.mjs`);
else await runWorkloads();

async function runWorkloads() {
  const known = {
    numbers: { rounds: undefined, retry: undefined },
    texts: { only: undefined },
    flags: ['quick', 'no-give-up', 'busy', 'check', 'report'],
    allowPositionals: true,
  };
  const { names, ...flags } = readArguments(USAGE, known, (values, positionals) => {
    const unknown = positionals.filter((name) => !Object.hasOwn(WORKLOADS, name));
    if (unknown.length > 0) throw new Error(`Unknown workload ${unknown.join(', ')}.`);
    const only = values.only?.split(',');
    const missing = only?.filter((name) => !lineup.some((contestant) => contestant.name === name)) ?? [];
    if (missing.length > 0) throw new Error(`Unknown contestant ${missing.join(', ')}.`);
    return { ...values, only, names: positionals.length > 0 ? positionals : Object.keys(WORKLOADS) };
  });
  if (flags.report) return writePages();

  // A signal alone would leave the started processes behind.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
  installContestants();
  if (!flags.check) await refuseIfBusy(flags.busy);
  const redis = await startRedis();
  const started = performance.now();
  let isCaught = true;
  for (const workload of names) {
    const begun = performance.now();
    const tables = await measure(workload, redis, flags);
    console.log(`${workload}: ${Math.round((performance.now() - begun) / 1000)} s`);
    if (flags.check) isCaught = tables.map(isCaughtIn).every(Boolean) && isCaught;
  }
  await redis.stop();
  console.log(`${Math.round((performance.now() - started) / 1000)} s`);
  process.exit(isCaught ? 0 : 1);
}

async function measure(workload, redis, flags) {
  const machine = await describeMachine(redis);
  const { title, run } = WORKLOADS[workload];
  const bench = new Bench({
    redis,
    contestants: contestants(workload, flags),
    quick: flags.quick || flags.check,
    rounds: flags.rounds ?? (flags.check ? 1 : undefined),
    retry: flags.retry,
    giveUp: !flags['no-give-up'],
    log: (line) => console.log(line),
  });
  await run(bench);
  const { tables, quick } = bench;
  if (flags.check) return tables;
  for (const table of tables) console.log(`\n${tableOf(table)}`);
  console.log(goalsOf(judge(tables, quick)));
  if (!quick) await write(workload, { workload, title, machine, retry: bench.retry, tables });
  return tables;
}

/** A workload that does not catch a contestant that locks nothing checks nothing. */
function isCaughtIn({ id, network, rows }) {
  const overlaps = sum(rows[0].rounds.map((round) => round.overlaps ?? 0));
  console.log(`${overlaps > 0 ? 'caught' : 'NOT CAUGHT'}  ${id}, ${network}: ${overlaps} overlaps`);
  return overlaps > 0;
}

function contestants(workload, { check, quick, only }) {
  if (check) return [impostor];
  const isMeant = (contestant) => only?.includes(contestant.name) ?? (!quick || contestant.quick?.includes(workload));
  return lineup.filter((contestant) => contestant.name === OURS || isMeant(contestant));
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
