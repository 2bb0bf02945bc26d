import type { KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import type { Party } from './dashboard.protocol.js';
import { isElection, type Line } from './rows.js';

/** A key, as it was seen last. */
export interface Seen {
  readonly report: KeyReport;
  readonly parties: readonly Party[];
  readonly line: Line;
}

/** How many hold and wait, and which processes: whether they are silent. */
export interface Census {
  readonly held: number;
  readonly waiting: number;
  readonly waitingSince: number | null;
  readonly processes: ReadonlyMap<string, boolean>;
}

export function censusOf(all: readonly Seen[], hears: boolean): Census {
  let [held, waiting] = [0, 0];
  let waitingSince: number | null = null;
  const processes = new Map<string, boolean>();
  for (const { report, parties, line } of all) {
    held += parties.some(({ phase }) => phase !== 'kept') ? report.holderCount : 0;
    for (const { owner, isSilent } of parties)
      processes.set(processOf(owner), (hears && isSilent) || (processes.get(processOf(owner)) ?? false));
    for (const { owner } of report.waiters) processes.set(processOf(owner), processes.get(processOf(owner)) ?? false);
    if (isElection(report) || line.row.waitingSince === null) continue;
    waiting += report.waiterCount;
    waitingSince = Math.min(waitingSince ?? Infinity, line.row.waitingSince);
  }
  return { held, waiting, waitingSince, processes };
}
