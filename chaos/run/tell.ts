import type { Entry } from '../history/entry.js';
import { select } from '../history/read.js';
import { groupBy } from '../oracles/calls.js';
import type { Violation } from '../oracles/oracle.js';
import type { RunResult } from './run.js';

/** ms of history that is shown before and after a violation */
const AROUND = { before: 1_500, after: 300 };
const MOST_LINES = 60;
const MOST_VIOLATIONS = 12;

export function tellFailure({ history, violations, options }: RunResult): void {
  const start = history[0]?.t ?? 0;
  for (const [oracle, found] of groupBy(violations, ({ oracle }) => oracle)) {
    console.log(`\nFAILED ${oracle}: ${found.length}`);
    for (const { key, at, what, guarantee } of found.slice(0, MOST_VIOLATIONS)) {
      console.log(`  ${seconds(at - start)} ${guarantee} ${key ?? ''}: ${what}`);
    }
    tellAround(history, found[0]!, start);
  }
  const { seed, length, kinds, groups } = options;
  console.log(
    `\nrepeat: npm run chaos -- --seed ${seed} --minutes ${length / 60_000} --kind ${kinds.join(',')} --faults ${groups.join(',') || 'none'}`,
  );
}

function tellAround(history: readonly Entry[], { key, at }: Violation, start: number): void {
  if (key === undefined) return;
  const ids = new Set(
    select(history, 'asked')
      .filter(({ keys }) => keys.includes(key))
      .map(({ id }) => id),
  );
  const lines = history.filter(({ t }) => t > at - AROUND.before && t < at + AROUND.after).filter((entry) => isAbout(entry, key, ids));
  const near = lines.findIndex(({ t }) => t >= at);
  const first = Math.max(0, near - (2 * MOST_LINES) / 3);
  for (const entry of lines.slice(first, first + MOST_LINES)) console.log(`    ${lineOf(entry, start)}`);
}

function isAbout(entry: Entry, key: string, ids: ReadonlySet<string>): boolean {
  if (entry.e === 'claim') return false;
  if ('id' in entry) return ids.has(entry.id);
  return entry.e === 'event' ? entry.key.endsWith(key) : ['fault', 'healed', 'killed', 'trouble', 'lag', 'calm'].includes(entry.e);
}

function lineOf({ t, w, e, ...rest }: Entry, start: number): string {
  return `${seconds(t - start)} ${w.padEnd(6)} ${e.padEnd(9)} ${JSON.stringify(rest).slice(0, 220)}`;
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(4).padStart(9)} s`;

export function tellSuccess({ history }: RunResult): void {
  const granted = select(history, 'granted').length;
  const faults = [...groupBy(select(history, 'fault'), ({ name }) => name)].map(([name, all]) => `${name} ×${all.length}`);
  console.log(`ok: ${granted} holdings, ${select(history, 'wrote').length} updates; ${faults.join(', ') || 'no faults'}`);
}
