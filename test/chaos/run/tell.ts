import type { Entry } from '../history/entry.js';
import { select } from '../history/read.js';
import { callsOf, groupBy } from '../oracles/calls.js';
import type { Violation } from '../oracles/oracle.js';
import type { RunOptions, RunResult } from './run.js';

/** ms of history that is shown before and after a violation */
const AROUND = { before: 3_000, after: 500 };
const MOST_LINES = 40;
const MOST_VIOLATIONS = 6;
const LONGEST_LINE = 240;

/** Each oracle that failed, with what it found and the history of the first key; the seed, and how to repeat the run. */
export function tellFailure({ history, violations, options, folder }: RunResult): void {
  const start = history[0]?.t ?? 0;
  for (const [oracle, found] of groupBy(violations, (violation) => violation.oracle)) {
    console.log(`\nFAILED ${oracle}: ${found.length}`);
    for (const { key, at, what, guarantee } of found.slice(0, MOST_VIOLATIONS)) {
      console.log(`  ${seconds(at - start)} ${guarantee}${key === undefined ? '' : ` ${key}`}: ${what.slice(0, 1_000)}`);
    }
    tellAround(history, found[0]!, start);
  }
  console.log(`\nrepeat:  ${commandOf(options)}\nhistory: ${folder}`);
}

function commandOf({ seed, length, kinds, groups, store, workers, break: broken }: RunOptions): string {
  const flags = [`--seed ${seed}`, `--minutes ${length / 60_000}`, `--kind ${kinds.join(',')}`, `--faults ${groups.join(',') || 'none'}`];
  flags.push(`--store ${store}`, `--workers ${workers}`);
  if (broken !== undefined) flags.push(`--break ${broken}`);
  return `npm run nightly -- chaos ${flags.join(' ')}`;
}

function tellAround(history: readonly Entry[], { key, at, what }: Violation, start: number): void {
  if (key === undefined) return;
  const shown = new Set(callsOf(history).flatMap(({ asked, granted }) => (asked.keys.includes(key) && granted ? [asked.id] : [])));
  for (const [id] of what.matchAll(/\bw\d+\.\d+-\d+\b/g)) shown.add(id);
  const lines = history.filter(({ t }) => t > at - AROUND.before && t < at + AROUND.after).filter((entry) => isAbout(entry, key, shown));
  const near = lines.findIndex(({ t }) => t >= at);
  const first = Math.max(0, near - Math.round(0.75 * MOST_LINES));
  for (const entry of lines.slice(first, first + MOST_LINES)) console.log(`    ${lineOf(entry, start)}`);
}

function isAbout(entry: Entry, key: string, shown: ReadonlySet<string>): boolean {
  if (entry.e === 'claim' || entry.e === 'fenced') return false;
  if (entry.e === 'latch') return entry.key === key;
  if ('id' in entry) return shown.has(entry.id);
  if (entry.e === 'lag') return entry.ms > 100;
  return entry.e === 'event' ? entry.key.endsWith(key) : ['fault', 'healed', 'killed', 'trouble', 'calm'].includes(entry.e);
}

function lineOf({ t, w, e, ...rest }: Entry, start: number): string {
  const words = Object.entries(rest).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${seconds(t - start)} ${w.padEnd(6)} ${e.padEnd(9)} ${words.join(' ').slice(0, LONGEST_LINE)}`;
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(3).padStart(8)} s`;

/** Prints what was done, in a few lines. */
export function tellSuccess({ history, options }: RunResult): void {
  const faults = [...groupBy(select(history, 'fault'), ({ name }) => name)].map(([name, all]) => `${name} ×${all.length}`).sort();
  console.log(`ok  ${options.store}, ${options.groups.join(', ') || 'no faults'}: ${faults.join(', ')}`);
}
