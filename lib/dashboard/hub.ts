import type { ServerResponse } from 'node:http';
import type { KeyEvent, KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import { detached } from '../core/util/detached.js';
import type { Locks } from '../locks.js';
import type { Alert, Messages, Note, Row, RowName } from './dashboard.protocol.js';
import { LiveTable } from './live-table.js';
import { Seconds } from './seconds.js';

/** Milliseconds. */
const SECOND = 1000;
const LOOK_AGAIN = 300_000;
/** Where processes get no messages. */
const LOOK_AGAIN_UNWATCHED = 5_000;
const WATCH_AGAIN = 5_000;
const HEALTH = 5_000;
const HEARTBEAT = 15_000;
/** A stream ends then, and the page opens another one: so a right that was taken away counts. */
const LONGEST_STREAM = 900_000;
/** Keys of a store that are listed. */
const MOST_KEYS = 10_000;
/** Contended keys that the store is asked for in a second. */
const ASKED_PER_SECOND = 8;
const MOST_NOTES = 500;
const PART = 500;
/** A holder that does not answer is an alert after so long, if others wait. */
const OLD = 30_000;
export const MOST_STREAMS = 20;

/** A page that looks. */
interface Stream {
  readonly response: ServerResponse;
  readonly endsAt: number;
  /** It has missed changes, since it reads slowly: it gets all rows when it has read what was sent. */
  isBehind: boolean;
}

/** Follows the stores for all pages that are open. While none is, it asks nothing and receives nothing. */
export class Hub {
  private readonly table = new LiveTable();
  private readonly seconds = new Seconds();
  private readonly streams = new Set<Stream>();
  private readonly latency: Record<string, number | null> = {};
  /** Problems of each store. */
  private readonly troubles = new Map<string, Alert[]>();
  /** Deadlocks that were seen once, by their keys: they count when they are seen twice. */
  private suspected = new Map<string, Alert>();
  private deadlocks: Alert[] = [];
  private notes: Note[] = [];
  private newNotes: Note[] = [];
  private watching: AbortController | undefined;
  private beats = 0;

  /** @param nameOf hides what keys say, if the app wants that. */
  constructor(
    private readonly stores: ReadonlyMap<string, Locks>,
    private readonly nameOf: (key: string) => string,
  ) {}

  get isFull(): boolean {
    return this.streams.size >= MOST_STREAMS;
  }

  /** Sends a page all that it needs, until it goes. */
  open(response: ServerResponse, hello: Omit<Messages['hello'], 'version' | 'now' | 'stores'>): void {
    const stream: Stream = { response, endsAt: Date.now() + LONGEST_STREAM, isBehind: false };
    this.streams.add(stream);
    response.on('close', () => this.leave(stream)).on('error', () => response.destroy());
    send(stream, 'hello', { version: 1, now: Date.now(), stores: [...this.stores.keys()], ...hello });
    this.sendAll(stream);
    send(stream, 'stats', this.statsOf(this.seconds.all));
    send(stream, 'notes', this.notes);
    if (!this.watching) this.start();
  }

  /** Asks the store for a key. */
  async ask(store: string, key: string): Promise<void> {
    const report = await this.stores
      .get(store)!
      .inspect({ key })
      .catch(() => undefined);
    if (report && this.watching) this.table.replace(store, report);
  }

  /** The keys that are shown. */
  get keys(): string[] {
    return [...this.table.keys.values()].map(({ key }) => key);
  }

  /** The last events of a key, the newest first. */
  notesOf(store: string, name: string): Note[] {
    return this.notes.filter((note) => note.store === store && note.key === name).reverse();
  }

  /** The last reports of the keys that somebody waits for. */
  reportsOf(store: string): KeyReport[] {
    return this.table.contended(Infinity).flatMap((live) => (live.store === store && live.report) || []);
  }

  close(): void {
    for (const { response } of this.streams) response.end();
    this.stop();
  }

  private leave(stream: Stream): void {
    this.streams.delete(stream);
    if (this.streams.size === 0) this.stop();
  }

  private stop(): void {
    this.watching?.abort();
    this.watching = undefined;
    this.table.clear();
  }

  private start(): void {
    const { signal } = (this.watching = new AbortController());
    const timer = setInterval(() => this.beat(), SECOND).unref();
    signal.addEventListener('abort', () => clearInterval(timer));
    for (const [store, locks] of this.stores) detached(() => this.follow(store, locks, signal));
  }

  private follow(store: string, locks: Locks, signal: AbortSignal): void {
    let lookAgain = LOOK_AGAIN;
    void this.examine(store, locks);
    repeat(WATCH_AGAIN, signal, async () => {
      try {
        for await (const event of locks.watch({ signal })) {
          lookAgain = LOOK_AGAIN;
          this.happened(store, event);
        }
      } finally {
        lookAgain = LOOK_AGAIN_UNWATCHED;
      }
    });
    repeat(HEALTH, signal, () => this.askHealth(store, locks));
    repeat(
      () => lookAgain,
      signal,
      () => this.look(store, locks, signal),
    );
  }

  private happened(store: string, event: KeyEvent): void {
    this.table.apply(store, event);
    this.seconds.add(event);
    const { event: name, key, label = null, owner, reason = null, at, app, host, pid } = event;
    if (!isNoteworthy(name)) return;
    const process = owner === undefined ? `${app}@${host}:${pid}` : processOf(owner);
    this.newNotes.push({ store, key: this.nameOf(key), at: at.getTime(), event: name, label, process, reason });
  }

  /** All keys of a store: also those of processes that have ended, or send nothing. */
  private async look(store: string, locks: Locks, signal: AbortSignal): Promise<void> {
    const listed = new Set<string>();
    try {
      for await (const report of locks.list({ state: 'used', limit: MOST_KEYS, signal })) {
        listed.add(report.key);
        this.table.replace(store, report);
      }
      this.table.keepOnly(store, listed);
    } catch {
      // `askHealth` says why.
    }
  }

  private async askHealth(store: string, locks: Locks): Promise<void> {
    const { roundTrip, error, degraded } = await locks.health();
    this.latency[store] = roundTrip ?? null;
    const texts = error ? [error.message] : degraded;
    this.setTroubles(store, 'store', texts);
  }

  /** Once: it takes a lock of its own. */
  private async examine(store: string, locks: Locks): Promise<void> {
    const report = await locks.doctor().catch(() => undefined);
    const unfit = report?.checks.filter(({ state, limits }) => state === 'bad' || limits?.purpose === 'correctness') ?? [];
    this.setTroubles(
      store,
      'doctor',
      unfit.map(({ name, seen, advice }) => [name, seen, advice].filter(Boolean).join(': ')),
    );
  }

  private setTroubles(store: string, kind: Alert['kind'], texts: readonly string[]): void {
    const others = this.troubles.get(store)?.filter((alert) => alert.kind !== kind) ?? [];
    this.troubles.set(store, [...others, ...texts.map((text) => ({ kind, text: this.stores.size > 1 ? `${store}: ${text}` : text }))]);
  }

  private beat(): void {
    this.beats++;
    for (const live of this.table.contended(ASKED_PER_SECOND)) {
      live.askedAt = Date.now();
      void this.ask(live.store, live.key);
    }
    if (this.beats % 2 === 0) this.findDeadlocks();
    const { put, drop } = this.table.takeChanges();
    const delta = { put: put.map((row) => this.named(row)), drop: drop.map((name) => this.named(name)) };
    const stats = this.statsOf([this.seconds.take(this.table)]);
    const notes = this.newNotes.splice(0);
    this.notes = [...this.notes, ...notes].slice(-MOST_NOTES);
    for (const stream of this.streams) {
      const { response } = stream;
      if (Date.now() > stream.endsAt) response.end();
      if (response.writableNeedDrain) {
        stream.isBehind = true;
        continue;
      }
      if (stream.isBehind) this.sendAll(stream);
      else if (put.length + drop.length > 0) send(stream, 'delta', delta);
      send(stream, 'stats', stats);
      if (notes.length > 0) send(stream, 'notes', notes);
      if (this.beats % (HEARTBEAT / SECOND) === 0) response.write(':\n\n');
    }
  }

  private sendAll(stream: Stream): void {
    stream.isBehind = false;
    const rows = this.table.rows.map((row) => this.named(row));
    for (let from = 0; from === 0 || from < rows.length; from += PART) {
      send(stream, 'rows', { isFirst: from === 0, rows: rows.slice(from, from + PART) });
    }
  }

  private statsOf(seconds: Messages['stats']['seconds']): Messages['stats'] {
    const { processes } = this.table;
    const alerts = [...this.deadlocks, ...this.silentHolders(), ...[...this.troubles.values()].flat()];
    return { seconds, processes, alerts, latency: this.latency };
  }

  private silentHolders(): Alert[] {
    const alerts: Alert[] = [];
    for (const live of this.table.contended(Infinity)) {
      const [holder] = live.holders.values();
      if (!holder?.isSilent || holder.since === null || holder.since > Date.now() - OLD) continue;
      const row = this.named({ store: live.store, key: live.key });
      const minutes = Math.round((Date.now() - holder.since) / 60_000);
      const text = `${row.key} is held for ${minutes} min by ${processOf(holder.owner)}, which does not answer.`;
      alerts.push({ kind: 'silent', text, row });
    }
    return alerts;
  }

  private findDeadlocks(): void {
    const found = new Map<string, Alert>();
    for (const [store, locks] of this.stores) {
      for (const { keys, members, endsIn } of locks.waitGraph(this.reportsOf(store))) {
        const names = keys.map((key) => this.nameOf(key));
        const who = members.map(({ app, host, pid }) => `${app}@${host}:${pid}`).join(' and ');
        const end = endsIn === null ? '' : `, until one of them gives up in ${Math.round(endsIn / 1000)} s`;
        const text = `Deadlock: ${[...names, names[0]].join(' → ')}. ${who} wait for each other${end}.`;
        found.set(keys.join('\n'), { kind: 'deadlock', text, row: { store, key: names[0]! } });
      }
    }
    this.deadlocks = [...found].flatMap(([keys, alert]) => (this.suspected.has(keys) ? [alert] : []));
    this.suspected = found;
  }

  private named<T extends Row | RowName>(row: T): T {
    return { ...row, key: this.nameOf(row.key) };
  }
}

function send<E extends keyof Messages>(stream: Stream, event: E, message: Messages[E]): void {
  const { response } = stream;
  if (response.destroyed || response.writableEnded) return;
  response.write(`event: ${event}\ndata: ${JSON.stringify(message)}\n\n`);
}

function isNoteworthy(event: KeyEvent['event']): event is Note['event'] {
  return ['lost', 'timeout', 'forced', 'failed', 'aborted'].includes(event);
}

/** Does the work at once and again and again, with pauses in between, until the signal aborts. */
function repeat(pause: number | (() => number), signal: AbortSignal, work: () => Promise<unknown>): void {
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    if (signal.aborted) return;
    void work().then(again, again);
  };
  const again = (): void => {
    if (!signal.aborted) timer = setTimeout(next, typeof pause === 'number' ? pause : pause()).unref();
  };
  signal.addEventListener('abort', () => clearTimeout(timer));
  next();
}
