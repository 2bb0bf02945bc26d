import type { Locks } from '../locks.js';
import type { KeyHolder, KeyReport, KeyWaiter } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import type { KeyDocument } from '../operate/ndl-document.js';
import { heldWhileWaiting } from '../operate/wait-graph.js';
import type { Output } from './output.js';

const NONE = '–';

/** `label of app@host:pid` */
export function callerOf(caller: KeyHolder | KeyWaiter): string {
  const label = labelOf(caller);
  return label === NONE ? processOf(caller) : `${label} of ${processOf(caller)}`;
}

/** The facts of a line that are known. */
export function listed(facts: readonly string[]): string {
  return facts.filter((fact) => fact !== '' && fact !== NONE).join(', ');
}

export function labelOf({ report }: Pick<KeyHolder, 'report'> | Pick<KeyWaiter, 'report'>): string {
  const [first] = report === undefined ? [] : [report].flat();
  return first?.label?.replaceAll(/\s+/g, ' ') ?? NONE;
}

/** Milliseconds for which the oldest of them has held or waited; `null`: nobody knows. */
export function oldest(at: Date, all: readonly { readonly since: Date | null }[]): number | null {
  const times = all.flatMap(({ since }) => (since ? [since.getTime()] : []));
  return times.length === 0 ? null : Math.max(0, at.getTime() - Math.min(...times));
}

/** These reports, and those of the keys that their waiters hold. */
export async function withHeld(locks: Locks, reports: readonly KeyReport[]): Promise<KeyReport[]> {
  const known = reports.map(({ key }) => key);
  const held = reports.flatMap(({ waiters }) => waiters.flatMap(heldWhileWaiting)).map(({ key }) => key);
  const others = [...new Set([...known, ...held])].slice(known.length);
  return [...reports, ...(await Promise.all(others.map((key) => locks.inspect({ key }))))];
}

/** Five keys in use, for who finds nothing: a key is often given without its namespace. It takes two seconds at most. */
export async function inUse(locks: Locks, pattern: string, out: Output): Promise<string> {
  const keys: string[] = [];
  try {
    const found = locks.list({ pattern, state: 'used', limit: 5, signal: AbortSignal.timeout(2_000) });
    for await (const { key } of found) keys.push(out.key(key));
  } catch {
    // A user may have no right to it.
  }
  return keys.length === 0 ? `Nothing like ${pattern} was found in use` : `In use: ${keys.join(', ')}`;
}

export function documentOf(report: KeyReport): KeyDocument {
  const since = ({ since: from }: { readonly since: Date | null }): number | null => oldest(report.at, [{ since: from }]);
  return {
    ...report,
    holders: report.holders.map((holder) => ({ ...holder, heldFor: since(holder) })),
    waiters: report.waiters.map((waiter) => ({ ...waiter, waitingFor: since(waiter) })),
  };
}
