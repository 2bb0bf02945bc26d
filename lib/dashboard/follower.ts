import type { DoctorReport } from '../core/model/doctor-report.js';
import type { KeyEvent, KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import { onAbort } from '../core/util/abort.js';
import { after, idle, now } from '../core/util/clock.js';
import { inParts } from '../core/util/in-parts.js';
import type { Locks } from '../locks.js';
import type { WatchedEvent } from '../operate/other-processes.js';
import { SeenTwice } from '../operate/wait-graph.js';
import type { Alert, FindAnswer, Listing } from './dashboard.protocol.js';
import type { LiveTable } from './live-table.js';

/** Milliseconds between two listings of all keys; and where they failed, or where processes send no events. */
const LOOK_AGAIN = 300_000;
const LOOK_AGAIN_SOON = 5_000;
const WATCH_AGAIN = 5_000;
const HEALTH_AGAIN = 5_000;
/** Keys of a store that are listed. */
const MOST_KEYS = 10_000;
/** Keys of a listing between which other work goes on. */
const YIELD = 500;
/** Contended keys that the store is asked for every two seconds, and how many by one question. */
const MOST_ASKED = 500;
const TOGETHER = 64;
/** A holder that does not answer is an alert after so long, if others wait. */
const OLD = 30_000;
/** Milliseconds of a search, and the keys that it finds at most. */
const LONGEST_SEARCH = 10_000;
const MOST_FOUND = 100;

export interface Followed {
  readonly store: string;
  readonly locks: Locks;
  readonly table: LiveTable;
  /** Hides what keys say, if the app wants that. */
  readonly nameOf: (key: string) => string;
  readonly happened: (event: WatchedEvent) => void;
  /** The report of the doctor on the store, new or from the last minute. */
  readonly doctor: () => Promise<DoctorReport>;
}

/** Follows one store until the signal aborts: by the events of its processes, by listings, and by questions about keys that somebody waits for. */
export class Follower {
  /** Milliseconds of the last request; `null`: it was not answered. */
  latency: number | null = null;
  listing: Listing = { state: 'under way', keys: 0, hasEvents: true };
  private isWatching = false;
  private hasPast = false;
  private watchAt = 0;
  private lookAt = 0;
  private healthAt = 0;
  private troubles: readonly string[] = [];
  private unfit: readonly string[] = [];
  /** The last events that were not sent. */
  private gap = { text: '', until: 0 };
  private deadlocks: readonly Alert[] = [];
  private readonly seen = new SeenTwice();
  private isAsking = false;
  private beats = 0;

  constructor(
    private readonly followed: Followed,
    private readonly signal: AbortSignal,
  ) {}

  /** Once a second. */
  beat(): void {
    const time = now();
    if (time >= this.watchAt) void this.watch();
    if (time >= this.lookAt) void this.look();
    if (time >= this.healthAt) void this.askHealth();
    if (++this.beats % 2 === 0) void this.askContended();
  }

  get alerts(): Alert[] {
    const { store } = this.followed;
    const texts = (kind: Alert['kind'], all: readonly string[]): Alert[] => all.map((text) => ({ kind, text: `${store}: ${text}` }));
    const gaps = now() < this.gap.until ? [this.gap.text] : [];
    return [...this.deadlocks, ...this.silentHolders(), ...texts('store', [...this.troubles, ...gaps]), ...texts('doctor', this.unfit)];
  }

  /** The last reports of the keys that somebody waits for. */
  get reports(): KeyReport[] {
    return this.contended.flatMap(({ report }) => report ?? []);
  }

  /** Asks the store for keys. */
  async ask(keys: readonly string[]): Promise<KeyReport[]> {
    const { store, locks, table } = this.followed;
    const askedAt = now();
    const reports = await locks
      .operator()
      .then((operator) => operator.inspectAll(keys))
      .catch(() => []);
    if (!this.signal.aborted) for (const report of reports) table.replace(store, report, askedAt);
    return reports;
  }

  /** Asks the store for the keys in use that have this text, with `*` for any characters. @throws {LockError} */
  async find(text: string): Promise<FindAnswer> {
    const { store, locks, table } = this.followed;
    const namespace = locks.mutex('-').key.slice(0, -1);
    const words = (text.startsWith(namespace) ? text.slice(namespace.length) : text).split(/\s+/).join('*');
    const begunAt = now();
    let found = 0;
    // `AbortSignal.any` leaks on Node 22 and before.
    const end = new AbortController();
    const { signal } = end;
    const timer = after(LONGEST_SEARCH, () => end.abort());
    const forget = onAbort(this.signal, () => end.abort());
    try {
      for await (const report of locks.list({ pattern: `*${words}*`, state: 'used', limit: MOST_FOUND, signal })) {
        table.replace(store, report, begunAt);
        found++;
      }
      return { found, isWhole: found < MOST_FOUND };
    } catch (error) {
      if (signal.aborted) return { found, isWhole: false };
      throw error;
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  private get contended(): ReturnType<LiveTable['contended']> {
    return this.followed.table.contended(this.followed.store);
  }

  private async watch(): Promise<void> {
    const { locks, happened } = this.followed;
    this.isWatching = true;
    this.watchAt = Infinity;
    try {
      const operator = await locks.operator();
      for await (const event of operator.watch({ signal: this.signal }, !this.hasPast)) {
        this.hasPast ||= event.firstAt !== undefined;
        if (event.event === 'dropped') this.missed(event);
        else happened(event);
      }
    } catch {
      // Its processes get no messages, or not now: it is listed more often.
    }
    this.isWatching = false;
    this.watchAt = now() + WATCH_AGAIN;
    if (this.lookAt < Infinity) this.lookAt = Math.min(this.lookAt, now() + LOOK_AGAIN_SOON);
  }

  /** The table has missed events: it is listed again. */
  private missed(event: KeyEvent): void {
    const text = `${event.count} events of ${event.app}@${event.host}:${event.pid} were too many to be sent: some keys may be shown as they were`;
    this.gap = { text, until: now() + LOOK_AGAIN_SOON };
    if (this.lookAt < Infinity) this.lookAt = Math.min(this.lookAt, this.gap.until);
  }

  /** All keys: also those of processes that have ended, or send no events. */
  private async look(): Promise<void> {
    const { store, locks, table } = this.followed;
    this.lookAt = Infinity;
    const begunAt = now();
    const listed = new Set<string>();
    const isKnown = ['whole', 'cut'].includes(this.listing.state);
    let state: Listing['state'] = 'failed';
    try {
      for await (const report of locks.list({ state: 'used', limit: MOST_KEYS + 1, signal: this.signal })) {
        listed.add(report.key);
        table.replace(store, report, begunAt);
        if (!isKnown) this.listing = { state: 'under way', keys: listed.size, hasEvents: this.isWatching };
        if (listed.size % YIELD === 0) await idle(0);
      }
      state = listed.size <= MOST_KEYS ? 'whole' : 'cut';
      if (state === 'whole') table.keepOnly(store, listed, begunAt);
    } catch {
      // `askHealth` says why.
    }
    this.listing = { state, keys: listed.size, hasEvents: this.isWatching };
    if (state === 'cut') await this.askOthers(listed);
    this.lookAt = now() + (state !== 'failed' && this.isWatching ? LOOK_AGAIN : LOOK_AGAIN_SOON);
  }

  /** Asks for the keys of the table that a listing does not have, since it was cut. */
  private async askOthers(listed: ReadonlySet<string>): Promise<void> {
    const { store, table } = this.followed;
    const others = [...table.keys.values()].filter((live) => live.store === store && !listed.has(live.key)).map(({ key }) => key);
    for (let from = 0; from < others.length && !this.signal.aborted; from += TOGETHER) await this.ask(others.slice(from, from + TOGETHER));
  }

  private async askHealth(): Promise<void> {
    this.healthAt = Infinity;
    const { roundTrip, error, degraded } = await this.followed.locks.health().catch((thrown: unknown) => ({
      roundTrip: undefined,
      error: thrown as Error,
      degraded: [],
    }));
    this.latency = roundTrip ?? null;
    this.troubles = error ? [error.message] : degraded;
    this.healthAt = now() + HEALTH_AGAIN;
  }

  /** For the alerts of the doctor. */
  async examine(): Promise<void> {
    const report = await this.followed.doctor().catch(() => undefined);
    const unfit = report?.checks.filter(({ state, limits }) => state === 'bad' || limits?.purpose === 'correctness') ?? [];
    this.unfit = unfit.map(({ name, seen, advice }) => [name, seen, advice].filter(Boolean).join(': '));
  }

  private silentHolders(): Alert[] {
    const { store, nameOf } = this.followed;
    return this.contended.flatMap(({ key, holders }) => {
      const [holder] = holders.values();
      if (!holder?.isSilent || holder.since === null || holder.since > Date.now() - OLD) return [];
      const minutes = Math.floor((Date.now() - holder.since) / 60_000);
      const text = `${nameOf(key)} is held for ${minutes} min by ${processOf(holder.owner)}, which does not answer.`;
      return [{ kind: 'silent', text, row: { store, key: nameOf(key) } }];
    });
  }

  /** Together, so that a deadlock among hundreds of keys is seen at the second look. */
  private async askContended(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    const asked = this.contended.slice(0, MOST_ASKED);
    for (const live of asked) live.askedAt = now();
    const parts = inParts(asked, [TOGETHER], () => [1]);
    await Promise.all(parts.map((part) => this.ask(part.map(({ key }) => key))));
    this.isAsking = false;
    this.findDeadlocks();
  }

  private findDeadlocks(): void {
    const { store, locks, nameOf } = this.followed;
    this.deadlocks = this.seen.of(locks.waitGraph(this.reports)).map(({ keys, members, endsIn, advice }) => {
      const who = members.map(({ app, host, pid, label, holds, waitsFor }) => {
        const caller = `${label === undefined ? '' : `${label} of `}${app}@${host}:${pid}`;
        return `${caller} holds ${holds.map(nameOf).join(', ')} and waits for ${nameOf(waitsFor)}`;
      });
      const end = endsIn === null ? 'No wait of them ends.' : `The first wait ends in ${Math.round(endsIn / 1000)} s.`;
      const text = `Deadlock: ${who.join('; ')}. ${end} Take one of the keys away to end it. ${advice}`;
      return { kind: 'deadlock', text, row: { store, key: nameOf(keys[0]!) } };
    });
  }
}
