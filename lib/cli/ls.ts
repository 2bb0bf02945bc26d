import { processOf } from '../core/model/owner.js';
import type { KeyReport } from '../core/model/key-report.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { age, type Output } from './output.js';
import { documentOf, inUse, labelOf, oldest } from './reports.js';

const ageOf = ({ at, holders, waiters }: KeyReport): number => oldest(at, holders) ?? oldest(at, waiters) ?? 0;
const ORDERS = {
  age: (one: KeyReport, other: KeyReport) => ageOf(other) - ageOf(one),
  waiters: (one: KeyReport, other: KeyReport) => other.waiterCount - one.waiterCount,
  key: (one: KeyReport, other: KeyReport) => (one.key < other.key ? -1 : 1),
};
const LIMIT = 1000;
/** Milliseconds between two lines of progress. */
const PROGRESS = 2000;

const HEAD = ['KEY', 'KIND', 'HOLDER', 'LABEL', 'HELD FOR', 'ENDS IN', 'WAITERS', 'FIRST WAITS'];

export const ls: Command = {
  words: ['[pattern]'],
  summary: 'keys that are held; * stands for any characters',
  flags: {
    all: { type: 'boolean', help: 'all keys that are in use: latches, and those that are only waited for, too' },
    waited: { type: 'boolean', help: 'only keys that somebody waits for' },
    'older-than': { type: 'string', help: 'only what has been held or waited for longer, such as 1m' },
    host: { type: 'string', help: 'only keys that are held from this host' },
    limit: { type: 'string', help: `keys to show at most (${LIMIT}), the first ones of the order` },
    sort: { type: 'string', help: 'age (default), waiters or key' },
  },
  async run({ flags, words: [pattern = '*'], out, signal, locks }) {
    const state = flags.has('all') ? 'used' : flags.has('waited') ? 'waited' : 'held';
    const [olderThan, limit = LIMIT, host] = [flags.duration('older-than'), flags.integer('limit', 1), flags.text('host')];
    const sort = flags.oneOf('sort', Object.keys(ORDERS) as (keyof typeof ORDERS)[]) ?? 'age';
    const reports: KeyReport[] = [];
    // Without a key there is perhaps no server either, which the error says.
    const progress = setInterval(() => reports.length > 0 && out.note(`${reports.length} keys so far …`), PROGRESS);
    const asked = [pattern !== '*' && ` like ${pattern}`, olderThan && ` older than ${age(olderThan)}`, host && ` of the host ${host}`];
    const narrow = asked.filter(Boolean).join('');
    let none = `No key${narrow} is ${state}`;
    try {
      const opened = await locks();
      none += out.namespace && ` in the namespace ${out.namespace}`;
      // People leave the namespace out. Scripts get what they ask for.
      for (const searched of out.isJson || pattern === '*' ? [pattern] : [pattern, `*${pattern}`]) {
        const found = opened.list({ pattern: searched, state, signal, limit: Number.MAX_SAFE_INTEGER, olderThan });
        for await (const report of found)
          if (host === undefined || report.holders.some((holder) => holder.host === host)) reports.push(report);
        if (reports.length > 0 && searched !== pattern) out.note(`${none}. Like ${searched}:`);
        if (reports.length > 0) break;
      }
      if (reports.length === 0 && !out.isJson && narrow) none += `. ${await inUse(opened, '*', out)}`;
    } finally {
      clearInterval(progress);
    }
    reports.sort(ORDERS[sort]);
    const shown = reports.slice(0, limit);
    out.json('ls', { at: new Date(), total: reports.length, keys: shown.map(documentOf) });
    const hears = (await locks()).store.bus !== undefined;
    const rows = shown.map((report) => rowOf(report, out, hears));
    out.table(HEAD, rows, `${none}.`);
    if (shown.length < reports.length)
      out.note(`The first ${shown.length} of ${reports.length} keys: see --limit, --older-than and --sort.`);
    return EXIT.ok;
  },
};

/** @param hears whether processes are asked: one that does not answer is silent then. */
function rowOf(report: KeyReport, out: Output, hears: boolean): string[] {
  const { kind, key, at, holders, holderCount, waiters, waiterCount, remaining, permits, count } = report;
  const what =
    kind === 'semaphore' && permits !== undefined ? `${kind} of ${permits}` : kind === 'count-down latch' ? `latch at ${count}` : kind;
  const [holder] = holders;
  const more = holderCount > 1 ? ` +${holderCount - 1}` : '';
  const wait = waiterCount > 0 ? age(oldest(at, waiters)) : '';
  return [
    out.key(key),
    what,
    holder ? `${processOf(holder)}${more}${holder.phase === 'kept' ? ' (kept)' : hears && !holder.report ? ' (silent)' : ''}` : '–',
    holder ? labelOf(holder) : '–',
    age(oldest(at, holders)),
    age(remaining),
    String(waiterCount),
    wait,
  ];
}
