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

/** Waiters of a key whose processes the search finds. */
const MOST_SEARCHED = 100;

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
  /** The last report of the store, while somebody waits; events are newer. */
  report: KeyReport | undefined;
  /** When it was asked for: the key that was not asked for longest is next. */
  askedAt: number;
  /** The time of its last event. */
  changedAt: number;
  /** Its row as JSON, which is made once for all pages; `undefined`: it has changed since. */
  text: string | undefined;
  /** The processes of its holders, and whether they are silent. */
  processes: readonly (readonly [name: string, isSilent: boolean])[];
}

/** The keys that are held or waited for, as events and reports say. Events come at once, and may be lost; reports are true, and cost a request. */
export class LiveTable {
  readonly keys = new Map<string, LiveKey>();
  private changed = new Set<string>();
  /** Keys that are neither held nor waited for any more. */
  private readonly unused = new Set<string>();
  private readonly waitedFor = new Set<LiveKey>();
  /** How many keys each process holds, and for how many it is silent. */
  private readonly holding = new Map<string, { holds: number; silent: number }>();

  /** @param nameOf hides what keys say, if the app wants that. */
  constructor(private readonly nameOf = (key: string): string => key) {}

  /** An event of a process. */
  apply(store: string, event: KeyEvent): void {
    const live = this.keys.get(idOf(store, event.key)) ?? this.add(store, event.key);
    live.changedAt = now();
    this.follow(live, event);
    this.touch(live);
  }

  /** A report of the store, which was asked for at some time: events since then are newer. */
  replace(store: string, report: KeyReport, askedAt: number): void {
    const id = idOf(store, report.key);
    const live = this.keys.get(id) ?? this.add(store, report.key);
    if (live.changedAt > askedAt) return;
    live.kind = report.kind;
    live.report = report.waiterCount > 0 ? report : undefined;
    const before = new Map(live.holders);
    live.holders.clear();
    for (const holder of report.holders) live.holders.set(holder.owner, partyOf(holder, before.get(holder.owner)));
    live.waiting = report.waiters.flatMap(({ owner, since, told }) =>
      told
        ? told.map((each): Waiting => ({ process: processOf(owner), label: each.label ?? null, since: each.since.getTime() }))
        : [{ process: processOf(owner), label: null, since: since.getTime() }],
    );
    const named = report.waiters.reduce((sum, { told }) => sum + Math.max(0, (told?.[0]?.waiting ?? 0) - (told?.length ?? 0)), 0);
    live.more = report.waiterCount - report.waiters.length + named;
    const { text } = live;
    const isChanged = this.changed.has(id);
    this.touch(live);
    live.text = JSON.stringify(this.rowOf(live));
    // Most keys are as they were: they need not be sent again.
    if (!isChanged && live.text === text && isUsed(live)) this.changed.delete(id);
  }

  /** Drops the keys of a store that it has not listed. */
  keepOnly(store: string, listed: ReadonlySet<string>, begunAt: number): void {
    for (const live of this.keys.values()) {
      if (live.store !== store || listed.has(live.key) || live.changedAt > begunAt) continue;
      live.kind = 'free';
      live.holders.clear();
      live.waiting = [];
      live.more = 0;
      this.touch(live);
    }
  }

  /** The keys that have changed since the last call. */
  takeChanges(): Set<string> {
    const changes = this.changed;
    this.changed = new Set();
    for (const id of this.unused) this.keys.delete(id);
    this.unused.clear();
    return changes;
  }

  /** A `delta` of these keys as JSON. */
  deltaOf(ids: Iterable<string>, isFirst = false): string {
    const put: string[] = [];
    const drop: RowName[] = [];
    for (const id of ids) {
      const live = this.keys.get(id);
      if (live && isUsed(live)) put.push((live.text ??= JSON.stringify(this.rowOf(live))));
      else drop.push({ store: storeIn(id), key: this.nameOf(id.slice(storeIn(id).length + 1)) });
    }
    return `{"isFirst":${isFirst},"put":[${put.join()}],"drop":${JSON.stringify(drop)}}`;
  }

  /** Keys of a store that somebody waits for: those that were not asked for longest first. */
  contended(store: string): LiveKey[] {
    return [...this.waitedFor].filter((live) => live.store === store).sort((a, b) => a.askedAt - b.askedAt);
  }

  /** How many hold and wait, and which processes. */
  census(): { held: number; waiting: number; processes: ProcessState[] } {
    let [held, waiting] = [0, 0];
    const all = new Map<string, ProcessState & { waits: number }>();
    for (const [name, { holds, silent }] of this.holding) {
      held += holds;
      all.set(name, { name, isSilent: silent > 0, holds, waits: 0 });
    }
    for (const live of this.waitedFor) {
      waiting += waitersOf(live);
      for (const { process: name } of live.waiting) {
        const process = all.get(name) ?? { name, isSilent: false, holds: 0, waits: 0 };
        process.waits++;
        all.set(name, process);
      }
    }
    return { held, waiting, processes: [...all.values()] };
  }

  private count([name, isSilent]: readonly [string, boolean], by: 1 | -1): void {
    const { holds, silent } = this.holding.get(name) ?? { holds: 0, silent: 0 };
    if (holds + by === 0) this.holding.delete(name);
    else this.holding.set(name, { holds: holds + by, silent: silent + by * Number(isSilent) });
  }

  private follow(live: LiveKey, event: KeyEvent): void {
    const { app, host, pid, label = null, owner = '', fencingToken: token = null } = event;
    const at = event.at.getTime();
    const process = `${app}@${host}:${pid}`;
    if (event.event === 'waiting') {
      live.waiting.push({ process, label, since: at });
      return;
    }
    if (event.event === 'acquired') {
      if (event.kind && Object.hasOwn(KINDS, event.kind)) live.kind = KINDS[event.kind];
      if (event.kind === 'mutex' || event.kind === 'write') live.holders.clear();
      live.holders.set(owner, { owner, app, host, pid, label, since: at, token, isSilent: false, saidAt: at, until: null });
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

  /** It has changed. */
  private touch(live: LiveKey): void {
    const id = idOf(live.store, live.key);
    live.text = undefined;
    this.changed.add(id);
    if (isUsed(live)) this.unused.delete(id);
    else this.unused.add(id);
    for (const holder of live.processes) this.count(holder, -1);
    live.processes = Array.from(live.holders.values(), ({ owner, isSilent }) => [processOf(owner), isSilent]);
    for (const holder of live.processes) this.count(holder, 1);
    if (waitersOf(live) > 0) this.waitedFor.add(live);
    else if (this.waitedFor.delete(live)) live.report = undefined;
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
      text: undefined,
      processes: [],
    };
    this.keys.set(idOf(store, key), live);
    return live;
  }

  private rowOf(live: LiveKey): Row {
    const { store, key, kind, holders, waiting } = live;
    const [first = null] = holders.values();
    // What the others said last is not shown: each answer would change their rows.
    const holder = first && { ...first, saidAt: first.isSilent ? first.saidAt : null };
    // Not as arguments, of which there may be too many.
    const waitingSince = waiting.reduce<number | null>((first, { since }) => Math.min(first ?? since, since), null);
    const waitingIn = [...new Set(waiting.slice(0, MOST_SEARCHED).map(({ process }) => process))];
    const shown = kind === 'mutex' && key.endsWith('-leader') ? 'leader election' : kind;
    return { store, key: this.nameOf(key), kind: shown, holder, holders: holders.size, waiters: waitersOf(live), waitingSince, waitingIn };
  }
}

/** Names of stores have no line breaks. */
export function idOf(store: string, key: string): string {
  return `${store}\n${key}`;
}

function storeIn(id: string): string {
  return id.slice(0, id.indexOf('\n'));
}

/** @param before what was known of the same owner: it stays when its process falls silent. */
export function partyOf({ owner, app, host, pid, phase, since, told, remaining }: KeyHolder, before?: Party): Party {
  const isSilent = phase === 'held' && told === undefined;
  if (isSilent && before) return { ...before, isSilent };
  const { label = null, fencingToken: token = null } = told ?? {};
  const until = told?.handedOverUntil?.getTime() ?? (phase === 'kept' && remaining !== null ? Date.now() + remaining : null);
  return { owner, app, host, pid, label, since: since?.getTime() ?? null, token, isSilent, saidAt: told ? Date.now() : null, until };
}

function waitersOf({ waiting, more }: LiveKey): number {
  return waiting.length + more;
}

function isUsed(live: LiveKey): boolean {
  return live.holders.size > 0 || waitersOf(live) > 0 || live.kind === 'count-down latch';
}
