import { setTimeout as pause } from 'node:timers/promises';
import type { Edge } from '../operate/ndl-document.js';
import type { Deadlock } from '../operate/wait-graph.js';
import type { KeyReport } from '../core/model/key-report.js';
import type { Locks } from '../locks.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { callerOf, processOf, withHeld } from './reports.js';
import { inWords } from './show.js';

/** Milliseconds between two looks: what only one of them finds was a passing state. */
const SECOND_LOOK = 1000;

export const graph: Command = {
  words: [],
  summary: 'which callers wait for which holders; deadlocks first (exit code 6)',
  flags: {
    dot: { type: 'boolean', help: 'for Graphviz' },
    mermaid: { type: 'boolean', help: 'for Mermaid' },
  },
  async run({ flags, out, locks, signal }) {
    const opened = await locks();
    let reports = await look(opened, signal);
    let deadlocks = opened.waitGraph(reports);
    if (deadlocks.length > 0) {
      const before = new Set(deadlocks.map(nameOf));
      await pause(SECOND_LOOK);
      reports = await look(opened, signal);
      deadlocks = opened.waitGraph(reports).filter((deadlock) => before.has(nameOf(deadlock)));
    }
    const edges = edgesOf(reports);
    out.json('graph', { at: new Date(), deadlocks, edges });
    if (flags.has('dot')) graphviz(edges).forEach((line) => out.line(line));
    else if (flags.has('mermaid')) mermaid(edges).forEach((line) => out.line(line));
    else {
      for (const deadlock of deadlocks) {
        out.line(`  ${inWords(deadlock, out)}`, 'deadlock');
        out.line();
      }
      const rows = edges.map(({ from, key, to }) => [from, out.key(key), to]);
      out.table(['WAITS', 'FOR', 'HELD BY'], rows, 'Nobody waits.');
    }
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

function nameOf({ keys, members }: Deadlock): string {
  return JSON.stringify([[...keys].sort(), members.map(processOf).sort()]);
}

function graphviz(edges: readonly Edge[]): string[] {
  const text = (name: string): string => `"${name.replaceAll(/["\\]/g, '\\$&')}"`;
  return ['digraph {', ...edges.map(({ from, to, key }) => `  ${text(from)} -> ${text(to)} [label=${text(key)}]`), '}'];
}

function mermaid(edges: readonly Edge[]): string[] {
  const names = [...new Set(edges.flatMap(({ from, to }) => [from, to]))];
  const text = (name: string): string => `"${name.replaceAll('"', '#quot;')}"`;
  const node = (name: string): string => `n${names.indexOf(name)}[${text(name)}]`;
  return ['graph LR', ...edges.map(({ from, to, key }) => `  ${node(from)} -->|${text(key)}| ${node(to)}`)];
}
