import type { KeyHolder, KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import type { Party, Row } from './dashboard.protocol.js';

/** Waiters of a key whose processes a search finds. */
const MOST_SEARCHED = 100;

/** A row, and what a search finds it by. */
export interface Line {
  readonly row: Row;
  /** The key in the store. */
  readonly key: string;
  readonly text: string;
}

/** The holders as they were known, by key and owner. */
export type Holders = ReadonlyMap<string, Party>;

export function holderId(key: string, owner: string): string {
  return `${key}\n${owner}`;
}

/** @param hears whether the processes of the store get questions. @param before what was known of this owner: it stays when its process falls silent. */
export function partyOf(
  { owner, app, host, pid, phase, since, report, remaining }: KeyHolder,
  time: number,
  hears: boolean,
  before?: Party,
): Party {
  const isSilent = hears && phase === 'held' && report === undefined;
  const endsAt = remaining === null ? null : Math.round(time + remaining);
  if (isSilent && before) return { ...before, endsAt, isSilent };
  const { label = null, fencingToken: token = null, handedOverUntil } = report ?? {};
  return {
    ...{ owner, app, host, pid, label, token, isSilent, since: since?.getTime() ?? null },
    phase: handedOverUntil ? 'handed over' : phase,
    endsAt: handedOverUntil?.getTime() ?? endsAt,
    saidAt: report ? time : null,
  };
}

export function lineOf(store: string, name: string, report: KeyReport, holder: Party | null, time: number): Line {
  const { key, kind, at, permits = null, holders, holderCount, waiters, waiterCount } = report;
  const row: Row = {
    ...{ store, key: name, permits, holder, holders: holderCount, waiters: waiterCount },
    kind: isElection(report) ? 'leader election' : kind,
    // By our clock, which may be another one than that of the store.
    waitingSince: waiters.length === 0 ? null : time - Math.max(0, ...waiters.map(({ since }) => at.getTime() - since.getTime())),
  };
  const callers = [...holders, ...waiters].slice(0, MOST_SEARCHED);
  const labels = callers.flatMap((caller) => [caller.report].flat().map((each) => each?.label));
  const text = [...new Set([name, store, row.kind, holder?.label, ...labels, ...callers.map(processOf)])].join(' ').toLowerCase();
  return { row, key, text };
}

/** Standbys of an election wait for days by design. */
export function isElection({ key, kind }: Pick<KeyReport, 'key' | 'kind'>): boolean {
  return key.endsWith('-leader') && (kind === 'mutex' || kind === 'free');
}

/** Whether a key is in use: held, kept, waited for, or a latch. */
export function isUsed({ kind, waiterCount }: KeyReport): boolean {
  return waiterCount > 0 || (kind !== 'free' && kind !== 'foreign');
}

/** Puts the keys with most waiters first, then the oldest. */
export function byUrgency({ row: one }: Line, { row: other }: Line): number {
  const age = ({ holder, waitingSince }: Row): number => holder?.since ?? waitingSince ?? Infinity;
  return other.waiters - one.waiters || age(one) - age(other) || (one.key < other.key ? -1 : 1);
}
