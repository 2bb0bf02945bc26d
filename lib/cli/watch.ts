import { setTimeout as pause } from 'node:timers/promises';
import type { KeyEvent, KeyReport } from '../core/model/key-report.js';
import type { Locks } from '../locks.js';
import type { Command, Session } from './command.js';
import { EXIT } from './failure.js';
import { HEAD, rowOf } from './ls.js';
import { age } from './output.js';
import { documentOf, oldest, processOf } from './reports.js';

/** Milliseconds between two pictures of `--top`. */
const REDRAW = 1000;
/** Keys that are looked at for it, and those that it shows: the oldest. */
const MOST = 100_000;
const MOST_ROWS = 50;

const WORDS: Record<KeyEvent['event'], (event: KeyEvent) => string> = {
  acquired: ({ waited, fencingToken }) =>
    `taken${waited ? ` after ${age(waited)}` : ''}${fencingToken == null ? '' : `, token ${fencingToken}`}`,
  waiting: () => 'waits',
  passedOn: ({ to }) => `handed over${to === undefined ? '' : ` to ${to}`}`,
  released: ({ held }) => `released after ${age(held)}`,
  timeout: ({ waited }) => `timed out after ${age(waited)}`,
  skipped: () => 'skipped',
  aborted: ({ waited }) => `aborted after ${age(waited)}`,
  failed: ({ reason }) => `failed: ${reason ?? ''}`,
  lost: ({ held, reason }) => `LOST after ${age(held)}: ${reason ?? ''}`,
  forced: ({ reason }) => `FORCED: ${reason ?? ''}`,
  dropped: ({ count }) => `${count} events are left out: they were too many to be sent`,
};

export const watch: Command = {
  words: ['[pattern]'],
  summary: 'what happens to keys, live: in processes that have waited once, or are visible',
  flags: { top: { type: 'boolean', help: 'a table of what is held, redrawn each second' } },
  async run(session) {
    const { flags, words, out, signal, locks } = session;
    const opened = await locks();
    if (flags.has('top')) return top(session, opened);
    const [pattern = '*'] = words;
    try {
      for await (const event of opened.watch({ pattern, signal })) {
        out.json('watch', event);
        const { key, label, at } = event;
        // Another version of this library may report other events.
        const words = Object.hasOwn(WORDS, event.event) ? WORDS[event.event](event) : event.event;
        out.line([at.toISOString().slice(11, 23), out.key(key), words, [label, processOf(event)].filter(Boolean).join(' of ')].join('  '));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return EXIT.ok;
  },
};

async function top({ words: [pattern = '*'], out, signal }: Session, locks: Locks): Promise<number> {
  while (!signal.aborted) {
    const reports: KeyReport[] = [];
    for await (const report of locks.list({ pattern, signal, limit: MOST })) reports.push(report);
    reports.sort((one, other) => (oldest(other.at, other.holders) ?? 0) - (oldest(one.at, one.holders) ?? 0));
    reports.splice(MOST_ROWS);
    out.json('top', { at: new Date(), keys: reports.map(documentOf) });
    out.clear();
    const rows = reports.map((report) => rowOf(report, out));
    out.table(HEAD, rows);
    await pause(REDRAW, undefined, { signal }).catch(() => undefined);
  }
  return EXIT.ok;
}
