import type { KeyEvent, KeyHolder, KeyKind, KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import { now } from '../core/util/clock.js';
import type { Party, ProcessState, Row, RowName } from './dashboard.protocol.js';

const KINDS: Readonly<Record<NonNullable<KeyEvent['kind']>, KeyKind>> = {
  mutex: 'mutex',
  read: 'read/write lock',
  write: 'read/write lock',
  semaphore: 'semaphore',
};

/** A caller that waits. */
interface Waiting {
  readonly process: string;
  readonly label: string | null;
  readonly since: number;
}

/** A key, as far as it is known. */
export interface LiveKey {
  readonly store: string;
  readonly key: string;
  kind: KeyKind;
  readonly holders: Map<string, Party>;
  waiting: Waiting[];
  /** Callers that wait beside those. */
  more: number;
  /** The last report of the store; events are newer. */
  report: KeyReport | undefined;
  /** When it was asked for: the key that was not asked for longest is next. */
  askedAt: number;
  /** The time of its last event. */
  changedAt: number;
}

/** The keys that are held or waited for, as events and reports say. Events come at once, and may be lost; reports are true, and cost a request. */
export class LiveTable {
  readonly keys = new Map<string, LiveKey>();
  private readonly changed = new Set<string>();

  /** An event of a process. */
  apply(store: string, event: KeyEvent): void {
    const live = this.keys.get(idOf(store, event.key)) ?? this.add(store, event.key);
    const { app, host, pid, label = null, owner = '', fencingToken: token = null } = event;
    const at = event.at.getTime();
    const process = `${app}@${host}:${pid}`;
    this.changed.add(idOf(store, event.key));
    live.changedAt = now();
    if (event.event === 'waiting') {
      live.waiting.push({ process, label, since: at });
      return;
    }
    if (event.event === 'acquired') {
      if (event.kind && Object.hasOwn(KINDS, event.kind)) live.kind = KINDS[event.kind];
      if (event.kind === 'mutex' || event.kind === 'write') live.holders.clear();
      live.holders.set(owner, { owner, app, host, pid, label, since: at, token, isSilent: false });
    }
    if (['acquired', 'timeout', 'aborted', 'failed'].includes(event.event)) {
      const index = live.waiting.findIndex((each) => each.process === process && each.label === label);
      if (index >= 0) live.waiting.splice(index, 1);
      else if (live.more > 0 && (event.waited ?? 0) > 1) live.more--;
    }
    if (['released', 'lost', 'forced'].includes(event.event)) {
      // The next caller of its process may have the same owner already. The token is not known if its process did not answer.
      const known = live.holders.get(owner)?.token ?? token;
      if (event.event === 'forced' || known === token) live.holders.delete(owner);
    }
  }

  /** A report of the store, which was asked for at some time: events since then are newer. */
  replace(store: string, report: KeyReport, askedAt: number): void {
    const id = idOf(store, report.key);
    const live = this.keys.get(id) ?? this.add(store, report.key);
    if (live.changedAt > askedAt) return;
    live.kind = report.kind;
    live.report = report;
    live.holders.clear();
    for (const holder of report.holders) live.holders.set(holder.owner, partyOf(holder));
    live.waiting = report.waiters.flatMap(({ owner, since, told }) =>
      told
        ? told.map((each): Waiting => ({ process: processOf(owner), label: each.label ?? null, since: each.since.getTime() }))
        : [{ process: processOf(owner), label: null, since: since.getTime() }],
    );
    const named = report.waiters.reduce((sum, { told }) => sum + Math.max(0, (told?.[0]?.waiting ?? 0) - (told?.length ?? 0)), 0);
    live.more = report.waiterCount - report.waiters.length + named;
    this.changed.add(id);
  }

  /** Drops the keys of a store that it has not listed. */
  keepOnly(store: string, listed: ReadonlySet<string>, begunAt: number): void {
    for (const [id, live] of this.keys) {
      if (live.store !== store || listed.has(live.key) || live.changedAt > begunAt) continue;
      live.kind = 'free';
      live.holders.clear();
      live.waiting = [];
      live.more = 0;
      this.changed.add(id);
    }
  }

  /** The rows that have changed since the last call. */
  takeChanges(): { put: Row[]; drop: RowName[] } {
    const put: Row[] = [];
    const drop: RowName[] = [];
    for (const id of this.changed) {
      const live = this.keys.get(id)!;
      if (isUsed(live)) put.push(rowOf(live));
      else {
        this.keys.delete(id);
        drop.push({ store: live.store, key: live.key });
      }
    }
    this.changed.clear();
    return { put, drop };
  }

  get rows(): Row[] {
    return [...this.keys.values()].filter(isUsed).map(rowOf);
  }

  /** Keys of a store that somebody waits for: those that were not asked for longest first. */
  contended(store: string): LiveKey[] {
    const waitedFor = [...this.keys.values()].filter((live) => live.store === store && waitersOf(live) > 0);
    return waitedFor.sort((a, b) => a.askedAt - b.askedAt);
  }

  /** The processes that hold or wait. */
  get processes(): ProcessState[] {
    const all = new Map<string, { name: string; isSilent: boolean; holds: number; waits: number }>();
    const of = (name: string): { name: string; isSilent: boolean; holds: number; waits: number } => {
      const known = all.get(name) ?? { name, isSilent: false, holds: 0, waits: 0 };
      all.set(name, known);
      return known;
    };
    for (const { holders, waiting } of this.keys.values()) {
      for (const { owner, isSilent } of holders.values()) {
        const process = of(processOf(owner));
        process.holds++;
        process.isSilent ||= isSilent;
      }
      for (const { process } of waiting) of(process).waits++;
    }
    return [...all.values()];
  }

  private add(store: string, key: string): LiveKey {
    const live: LiveKey = {
      store,
      key,
      kind: 'free',
      holders: new Map(),
      waiting: [],
      more: 0,
      report: undefined,
      askedAt: 0,
      changedAt: 0,
    };
    this.keys.set(idOf(store, key), live);
    return live;
  }
}

/** Names of stores have no line breaks. */
export function idOf(store: string, key: string): string {
  return `${store}\n${key}`;
}

export function partyOf({ owner, app, host, pid, phase, since, told }: KeyHolder): Party {
  const { label = null, fencingToken: token = null } = told ?? {};
  return { owner, app, host, pid, label, since: since?.getTime() ?? null, token, isSilent: phase === 'held' && told === undefined };
}

function waitersOf({ waiting, more }: LiveKey): number {
  return waiting.length + more;
}

function isUsed(live: LiveKey): boolean {
  return live.holders.size > 0 || waitersOf(live) > 0 || live.kind === 'count-down latch';
}

function rowOf(live: LiveKey): Row {
  const { store, key, kind, holders, waiting } = live;
  const [holder = null] = holders.values();
  // Not as arguments, of which there may be too many.
  const waitingSince = waiting.reduce<number | null>((first, { since }) => Math.min(first ?? since, since), null);
  return { store, key, kind, holder, holders: holders.size, waiters: waitersOf(live), waitingSince };
}
