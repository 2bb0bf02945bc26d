// Simulates apps, servers and faults, all of it from a seed. `npm run nightly -- simulate --help`
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { FENCE_ONLY, SURVIVABLE, type Group } from '../chaos/faults/fault.js';
import { KINDS, type Entry, type Kind } from '../chaos/history/entry.js';
import { BREAKS } from './breaks.js';
import { codeOf } from './code.js';
import type { StoreKind } from './inside.js';
import { simulate, type SimulationOptions, type SimulationResult } from './simulate.js';

const HELP = `npm run nightly -- simulate [options]

  --seed <n>        the seed of the first run, the others count on from it; default: a random one
  --seconds <n>     begin no run after so many seconds of this process; default: 20
  --ci              for so many seconds runs from seed 1, then as long from a random one
  --runs <n>        at most so many runs
  --writes <n>      begin no run after so many guarded writes
  --length <n>      ms of each run in which faults strike; default: 15000
  --dense           more than twice as many faults
  --report <file>   adds what was run to this list
  --store <names>   with commas: ${['records', 'observed', 'quorum'].join(',')}; default: in turn
  --defect <text>   the title of a mutant that is put into the code, with its table where two have it: 'records: …'
  --prove           each defect of breaks.ts, or the one of --defect, must be found within a minute of this process
  --shrink          finds how many of the faults of a run that fails are enough for that
  --trace           prints the whole history`;

/** seconds */
const LONGEST_SEARCH = 60;
const QUORUM_KINDS: readonly Kind[] = ['mutex', 'read-write', 'multi', 'leader'];
const STORES: readonly StoreKind[] = ['records', 'observed', 'quorum'];

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000_000)) },
    seconds: { type: 'string', default: '20' },
    runs: { type: 'string', default: 'Infinity' },
    writes: { type: 'string', default: 'Infinity' },
    dense: { type: 'boolean', default: false },
    report: { type: 'string' },
    length: { type: 'string', default: '15000' },
    store: { type: 'string', default: STORES.join(',') },
    defect: { type: 'string' },
    ci: { type: 'boolean', default: false },
    prove: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const stores = flags.store.split(',') as StoreKind[];
if (flags.help) console.log(HELP);
else process.exitCode = (await run()) ? 0 : 1;

async function run(): Promise<boolean> {
  if (flags.prove) return prove();
  return (!flags.ci || (await runAll(1))) && runAll(Number(flags.seed));
}

/** Seconds for which this process has had a processor: another load on the machine does not change what is run. */
function seconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

async function runAll(from: number): Promise<boolean> {
  const code = await codeOf(flags.defect);
  const end = seconds() + Number(flags.seconds);
  const total = { runs: 0, holdings: 0, writes: 0, faults: 0, lost: 0 };
  const isOver = (): boolean => total.runs >= Number(flags.runs) || total.writes >= Number(flags.writes) || seconds() >= end;
  for (let seed = from; !isOver(); seed++) {
    const options = optionsOf(seed, stores[seed % stores.length]!);
    const result = await simulate(code, options);
    total.runs++;
    total.writes += result.writes;
    total.faults += result.faults;
    total.lost += result.lost;
    total.holdings += result.history.filter(({ e }) => e === 'granted').length;
    if (flags.trace) console.log(result.history.map(lineOf).join('\n'));
    if (result.violations.length === 0) continue;
    tell(options, result);
    if (flags.shrink) {
      const least = await shortest(options, (fewer) => simulate(code, fewer), result);
      console.log(`The first ${least.options.faults ?? result.faults} of its ${result.faults} faults suffice.`);
      tell(least.options, least.result);
    }
    return false;
  }
  if (flags.report !== undefined) report(flags.report, { from, ...total, dense: flags.dense, length: Number(flags.length), stores });
  console.log(
    `${total.runs} runs from seed ${from}: ${total.holdings} holdings, ${total.writes} guarded writes, ${total.faults} faults, ${total.lost} messages lost: ok`,
  );
  return true;
}

function report(file: string, part: object): void {
  const parts = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object[]) : [];
  writeFileSync(file, `[\n${[...parts, part].map((each) => `  ${JSON.stringify(each)}`).join(',\n')}\n]\n`);
}

/** Runs each of the broken builds until something is found. Short runs: a broken build shows it soon, or with another seed. */
async function prove(): Promise<boolean> {
  let isWell = true;
  const given = flags.defect === undefined ? BREAKS : stores.map((store) => ({ store, defect: flags.defect! }));
  for (const { store, defect } of given) {
    const code = await codeOf(defect);
    const start = seconds();
    let [seed, found]: [number, SimulationResult | undefined] = [0, undefined];
    while (!found && seconds() < start + LONGEST_SEARCH) {
      const result = await simulate(code, { ...optionsOf(++seed, store), length: 3_000 });
      if (result.violations.length > 0) found = result;
    }
    const [first] = found?.violations ?? [];
    const what = first ? `by ${first.oracle}, ${first.guarantee}, with seed ${seed}` : `NOT FOUND with ${seed} seeds`;
    console.log(`${(seconds() - start).toFixed(0).padStart(3)} s  ${what.padEnd(40)} ${store}: ${defect}`);
    isWell &&= found !== undefined;
  }
  return isWell;
}

/**
 * Each tenth seed is for a store that forgets, or whose clock jumps: only the fencing tokens must be right then, and where the store has no clock exclusion,
 * too, once all have noticed.
 */
function optionsOf(seed: number, store: StoreKind): SimulationOptions {
  const lossy = seed % 10 === 0 && store !== 'quorum';
  const losses: Group[] = store === 'observed' ? ['loss'] : [...SURVIVABLE, FENCE_ONLY[seed % 20 === 0 ? 0 : 1]];
  return {
    seed: String(seed),
    store,
    kinds: store === 'quorum' ? [...QUORUM_KINDS] : [...KINDS],
    groups: lossy ? losses : [...SURVIVABLE],
    forgets: store === 'quorum' && seed % 2 === 0,
    length: Number(flags.length),
    dense: flags.dense,
  };
}

/** With as few faults as possible, of those that strike first. */
async function shortest(
  options: SimulationOptions,
  run: (options: SimulationOptions) => Promise<SimulationResult>,
  result: SimulationResult,
): Promise<{ options: SimulationOptions; result: SimulationResult }> {
  let least = { options, result };
  for (let [low, high] = [0, result.faults]; low < high;) {
    const faults = (low + high) >> 1;
    const fewer = { ...options, faults };
    const found = await run(fewer);
    if (found.violations.length > 0) {
      least = { options: fewer, result: found };
      high = faults;
    } else low = faults + 1;
  }
  return least;
}

function tell({ seed, store, groups, faults, length }: SimulationOptions, { history, violations }: SimulationResult): void {
  const more = `${flags.dense ? ' --dense' : ''}${flags.defect === undefined ? '' : ` --defect '${flags.defect}'`}`;
  console.log(`seed ${seed}, ${store}, faults of ${groups.join(', ')}${faults === undefined ? '' : `, the first ${faults}`}`);
  for (const { oracle, guarantee, key, at, what } of violations.slice(0, 5)) {
    console.log(`FAILED ${oracle}, ${guarantee}: ${key ?? ''} at ${at.toFixed(1)} ms: ${what}`);
    const near = history.filter(
      (entry) => entry.t > at - 3_000 && entry.t < at + 100 && (key === undefined || concerns(entry, key, history)),
    );
    for (const entry of near.slice(-40)) console.log(`  ${lineOf(entry)}`);
  }
  console.log(`repeat: npm run nightly -- simulate --seed ${seed} --store ${store} --length ${length} --runs 1${more}`);
}

function concerns(entry: Entry, key: string, history: readonly Entry[]): boolean {
  if (entry.e === 'fault' || entry.e === 'healed' || entry.e === 'killed') return true;
  if (JSON.stringify(entry).includes(`"${key}"`)) return true;
  return 'id' in entry && history.some((other) => other.e === 'asked' && other.id === entry.id && other.keys.includes(key));
}

function lineOf({ t, w, e, ...rest }: Entry): string {
  return `${t.toFixed(3)} ${w} ${e} ${JSON.stringify(rest)}`;
}
