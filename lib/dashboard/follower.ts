import type { DoctorReport } from '../core/model/doctor-report.js';
import type { KeyEvent, KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import { now } from '../core/util/clock.js';
import type { Locks } from '../locks.js';
import { SeenTwice } from '../operate/wait-graph.js';
import type { Alert } from './dashboard.protocol.js';
import type { LiveTable } from './live-table.js';

/** Milliseconds between two listings of all keys; and where they failed, or where processes send no events. */
const LOOK_AGAIN = 300_000;
const LOOK_AGAIN_SOON = 5_000;
const WATCH_AGAIN = 5_000;
const HEALTH_AGAIN = 5_000;
/** Keys of a store that are listed. */
const MOST_KEYS = 10_000;
/** Contended keys that the store is asked for in a second. */
const ASKED_PER_SECOND = 4;
/** A holder that does not answer is an alert after so long, if others wait. */
const OLD = 30_000;

export interface Followed {
  readonly store: string;
  readonly locks: Locks;
  readonly table: LiveTable;
  /** Hides what keys say, if the app wants that. */
  readonly nameOf: (key: string) => string;
  readonly happened: (event: KeyEvent) => void;
  /** The report of the doctor on the store, new or from the last minute. */
  readonly doctor: () => Promise<DoctorReport>;
}

/** Follows one store until the signal aborts: by the events of its processes, by listings, and by questions about keys that somebody waits for. */
export class Follower {
  /** Milliseconds of the last request; `null`: it was not answered. */
  latency: number | null = null;
  private isWatching = false;
  private watchAt = 0;
  private lookAt = 0;
  private healthAt = 0;
  private troubles: readonly string[] = [];
  private unfit: readonly string[] = [];
  /** The last events that were not sent. */
  private gap = { text: '', until: 0 };
  private deadlocks: readonly Alert[] = [];
  private readonly seen = new SeenTwice();
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
    for (const live of this.contended.slice(0, ASKED_PER_SECOND)) {
      live.askedAt = time;
      void this.ask(live.key);
    }
    if (++this.beats % 2 === 0) this.findDeadlocks();
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

  /** Asks the store for a key. */
  async ask(key: string): Promise<void> {
    const { store, locks, table } = this.followed;
    const askedAt = now();
    const report = await locks.inspect({ key }).catch(() => undefined);
    if (report && !this.signal.aborted) table.replace(store, report, askedAt);
  }

  private get contended(): ReturnType<LiveTable['contended']> {
    return this.followed.table.contended(this.followed.store);
  }

  private async watch(): Promise<void> {
    const { locks, happened } = this.followed;
    this.isWatching = true;
    this.watchAt = Infinity;
    try {
      for await (const event of locks.watch({ signal: this.signal })) {
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
    let isWhole = false;
    try {
      for await (const report of locks.list({ state: 'used', limit: MOST_KEYS, signal: this.signal })) {
        listed.add(report.key);
        table.replace(store, report, begunAt);
      }
      if (listed.size < MOST_KEYS) table.keepOnly(store, listed, begunAt);
      isWhole = true;
    } catch {
      // `askHealth` says why.
    }
    this.lookAt = now() + (isWhole && this.isWatching ? LOOK_AGAIN : LOOK_AGAIN_SOON);
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
      const minutes = Math.round((Date.now() - holder.since) / 60_000);
      const text = `${nameOf(key)} is held for ${minutes} min by ${processOf(holder.owner)}, which does not answer.`;
      return [{ kind: 'silent', text, row: { store, key: nameOf(key) } }];
    });
  }

  private findDeadlocks(): void {
    const { store, locks, nameOf } = this.followed;
    this.deadlocks = this.seen.of(locks.waitGraph(this.reports)).map(({ keys, members, endsIn }) => {
      const names = keys.map(nameOf);
      const who = members.map(processOf).join(' and ');
      const end = endsIn === null ? '' : `, until one of them gives up in ${Math.round(endsIn / 1000)} s`;
      const text = `Deadlock: ${[...names, names[0]].join(' → ')}. ${who} wait for each other${end}.`;
      return { kind: 'deadlock', text, row: { store, key: names[0]! } };
    });
  }
}
