import type { Group } from '../faults/fault.js';
import { KINDS, type Kind } from '../history/entry.js';
import { select } from '../history/read.js';
import { callsOf, groupBy } from '../oracles/calls.js';
import { ORACLES, type OracleName } from '../oracles/oracle.js';
import type { RunResult } from './run.js';

/** The outcome of a run, for the report. */
export interface Summary {
  store: string;
  seed: string;
  seconds: number;
  groups: Group[];
  /** how often each fault struck */
  faults: Record<string, number>;
  kinds: Partial<Record<Kind, KindSummary>>;
  /** how often each oracle was violated, by kind; `any` where it is not of one kind */
  violations: Partial<Record<OracleName, Partial<Record<Kind | 'any', number>>>>;
}

interface KindSummary {
  calls: number;
  /** granted, or of latches answered */
  holdings: number;
  /** ms that the longest wait took until it was granted */
  maxWait: number;
}

export function summarize({ options, history, violations }: RunResult): Summary {
  const { store, seed, length, groups } = options;
  const byKind = groupBy(callsOf(history), ({ asked }) => asked.kind);
  const kinds: Summary['kinds'] = {};
  for (const kind of KINDS) {
    const calls = byKind.get(kind) ?? [];
    const waits = calls.flatMap(({ asked, granted }) => (granted ? [granted.t - asked.t] : []));
    if (calls.length > 0) kinds[kind] = { calls: calls.length, holdings: waits.length, maxWait: Math.round(largest(waits)) };
  }
  const asked = select(history, 'latch');
  const answered = select(history, 'latched').filter(({ result }) => /^(\d+|open|true)$/.test(result)).length;
  if (asked.length > 0) kinds.latch = { calls: asked.length, holdings: answered, maxWait: 0 };
  const found: Summary['violations'] = {};
  for (const oracle of ORACLES) {
    const ofOracle = violations.filter((violation) => violation.oracle === oracle);
    if (ofOracle.length > 0) found[oracle] = countsBy(ofOracle.map(({ kind }) => kind ?? 'any'));
  }
  const faults = countsBy(select(history, 'fault').map(({ name }) => name));
  return { store, seed, seconds: Math.round(length / 1_000), groups, faults, kinds, violations: found };
}

function countsBy<T extends string>(names: readonly T[]): Record<T, number> {
  const counts = {} as Record<T, number>;
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

/** The numbers of several runs: holdings for each group of faults and kind, and the longest wait. */
export function tellSummaries(summaries: readonly Summary[]): void {
  const rows = summaries.map(({ store, groups, kinds, faults }) => {
    const cells = KINDS.map((kind) => (kinds[kind] ? `${kinds[kind].holdings} (${(kinds[kind].maxWait / 1_000).toFixed(1)} s)` : '–'));
    const count = Object.values(faults).reduce((sum, number) => sum + number, 0);
    return [store, groups.length > 3 ? `${groups.length} groups` : groups.join('+') || 'none', String(count), ...cells];
  });
  const table = [['store', 'faults of', 'faults', ...KINDS], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  console.log('\nholdings, and the longest wait that ended with one:');
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join('  '));
}
