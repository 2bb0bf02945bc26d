import type { KeyReport } from '../core/model/key-report.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { age } from './output.js';
import { documentOf, holderOf, labelOf, oldest } from './reports.js';

const SORTS = ['age', 'waiters', 'key'] as const;

export const ls: Command = {
  words: ['[pattern]'],
  summary: 'keys that are held or waited for; * stands for any characters',
  flags: {
    all: { type: 'boolean', help: 'latches, too, and all keys that are in use' },
    waited: { type: 'boolean', help: 'only keys that somebody waits for' },
    'older-than': { type: 'string', help: 'only what has been held or waited for longer, such as 1m' },
    host: { type: 'string', help: 'only keys that are held from this host' },
    limit: { type: 'string', help: 'keys at most (1000)' },
    sort: { type: 'string', help: 'age (default), waiters or key' },
  },
  async run({ flags, words: [pattern = '*'], out, signal, locks }) {
    const state = flags.has('all') ? 'used' : flags.has('waited') ? 'waited' : 'held';
    const [olderThan, limit, host] = [flags.duration('older-than'), flags.integer('limit', 1), flags.text('host')];
    const sort = flags.oneOf('sort', SORTS) ?? 'age';
    const reports: KeyReport[] = [];
    const progress = setInterval(() => out.note(`${reports.length} keys so far …`), 2000);
    progress.unref();
    try {
      const found = (await locks()).list({ pattern, state, signal, ...(olderThan && { olderThan }), ...(limit && { limit }) });
      for await (const report of found)
        if (host === undefined || report.holders.some((holder) => holder.host === host)) reports.push(report);
    } finally {
      clearInterval(progress);
    }
    reports.sort(ORDERS[sort]);
    out.json({ at: new Date(), keys: reports.map(documentOf) });
    if (reports.length === 0) out.line(`No key is ${state}.`);
    else out.table(['KEY', 'KIND', 'HOLDER', 'LABEL', 'HELD FOR', 'ENDS IN', 'WAITERS', 'FIRST WAITS'], reports.map(rowOf));
    return EXIT.ok;
  },
};

const ORDERS: Record<(typeof SORTS)[number], (one: KeyReport, other: KeyReport) => number> = {
  age: (one, other) => ageOf(other) - ageOf(one),
  waiters: (one, other) => other.waiterCount - one.waiterCount,
  key: (one, other) => (one.key < other.key ? -1 : 1),
};

function ageOf({ at, holders, waiters }: KeyReport): number {
  return oldest(at, holders) ?? oldest(at, waiters) ?? 0;
}

export function rowOf(report: KeyReport): string[] {
  const { key, kind, at, holders, waiters, waiterCount, remaining, permits, count } = report;
  const what =
    kind === 'semaphore' && permits !== undefined ? `${kind} of ${permits}` : kind === 'count-down latch' ? `latch at ${count}` : kind;
  const [holder] = holders;
  const wait = waiterCount > 0 ? age(oldest(at, waiters)) : '';
  return [key, what, holderOf(report), holder ? labelOf(holder) : '–', age(oldest(at, holders)), age(remaining), String(waiterCount), wait];
}
