import { setTimeout as pause } from 'node:timers/promises';
import type { Edge } from '../operate/ndl-document.js';
import { SeenTwice } from '../operate/wait-graph.js';
import type { KeyReport } from '../core/model/key-report.js';
import type { Locks } from '../locks.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { callerOf, withHeld } from './reports.js';
import { inWords } from './show.js';

/** Milliseconds between two looks. */
const SECOND_LOOK = 1000;

export const graph: Command = {
  words: [],
  summary: 'which callers wait for which holders; deadlocks first (exit code 6)',
  flags: {},
  async run({ out, locks, signal }) {
    const opened = await locks();
    let reports = await look(opened, signal);
    let deadlocks = opened.waitGraph(reports);
    if (deadlocks.length > 0) {
      const seen = new SeenTwice();
      seen.of(deadlocks);
      await pause(SECOND_LOOK);
      reports = await look(opened, signal);
      deadlocks = seen.of(opened.waitGraph(reports));
    }
    const edges = edgesOf(reports);
    out.json('graph', { at: new Date(), deadlocks, edges });
    for (const deadlock of deadlocks) {
      out.line(`  ${inWords(deadlock, out)}`, 'deadlock');
      out.line();
    }
    const rows = edges.map(({ from, key, to }) => [from, out.key(key), to]);
    out.table(['WAITS', 'FOR', 'HELD BY'], rows, 'Nobody waits.');
    return deadlocks.length > 0 ? EXIT.findings : EXIT.ok;
  },
};

/** The keys that somebody waits for, and those that the waiters hold. */
async function look(locks: Locks, signal: AbortSignal): Promise<KeyReport[]> {
  const reports: KeyReport[] = [];
  for await (const report of locks.list({ state: 'waited', limit: 10_000, signal })) reports.push(report);
  return withHeld(locks, reports);
}

function edgesOf(reports: readonly KeyReport[]): Edge[] {
  return reports.flatMap(({ key, holders, waiters }) => {
    const to = holders.length === 0 ? ['nobody'] : holders.map(callerOf);
    return waiters.flatMap((waiter) => to.map((each) => ({ from: callerOf(waiter), to: each, key })));
  });
}
