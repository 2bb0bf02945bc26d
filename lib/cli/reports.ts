import type { KeyHolder, KeyReport, KeyWaiter, OwnerParts } from '../core/model/key-report.js';

/** `app@host:pid` */
export function processOf({ app, host, pid }: OwnerParts): string {
  return `${app}@${host}:${pid}`;
}

/** The process of the first holder, and how many there are besides. */
export function holderOf({ holders: [first], holderCount }: KeyReport): string {
  if (!first) return '–';
  return `${processOf(first)}${holderCount > 1 ? ` +${holderCount - 1}` : ''}${first.phase === 'kept' ? ' (kept)' : ''}`;
}

export function labelOf({ told }: Pick<KeyHolder, 'told'> | Pick<KeyWaiter, 'told'>): string {
  const [first] = told === undefined ? [] : [told].flat();
  return first?.label?.replaceAll(/\s+/g, ' ') ?? '–';
}

/** Milliseconds for which the oldest of them has held or waited; `null`: nobody knows. */
export function oldest(at: Date, all: readonly { readonly since: Date | null }[]): number | null {
  const times = all.flatMap(({ since }) => (since ? [since.getTime()] : []));
  return times.length === 0 ? null : Math.max(0, at.getTime() - Math.min(...times));
}

/** A report with its ages in milliseconds. */
export function documentOf(report: KeyReport): object {
  const since = ({ since: from }: { readonly since: Date | null }): number | null => oldest(report.at, [{ since: from }]);
  return {
    ...report,
    holders: report.holders.map((holder) => ({ ...holder, heldFor: since(holder) })),
    waiters: report.waiters.map((waiter) => ({ ...waiter, waitingFor: since(waiter) })),
  };
}
