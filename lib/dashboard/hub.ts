import type { ServerResponse } from 'node:http';
import type { DoctorReport } from '../core/model/doctor-report.js';
import type { KeyEvent, KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import { after, now } from '../core/util/clock.js';
import { detached } from '../core/util/detached.js';
import type { Locks } from '../locks.js';
import type { Messages, Note, Row, RowName } from './dashboard.protocol.js';
import { Follower } from './follower.js';
import { LiveTable } from './live-table.js';
import { Seconds } from './seconds.js';

/** Milliseconds. */
const SECOND = 1000;
const MINUTE = 60_000;
const HEARTBEAT = 15_000;
/** A stream ends then, and the page opens another one: so a right that was taken away counts. */
const LONGEST_STREAM = 900_000;
const GOODBYE = 5_000;
const MOST_NOTES = 500;
const MOST_RELEASES = 2000;
const SHOWN_NOTES = 20;
const PART = 500;
export const MOST_STREAMS = 20;

/** A page that looks. */
interface Stream {
  readonly response: ServerResponse;
  /** A time of the monotonic clock. */
  readonly endsAt: number;
  /** It has not read yet what was sent. */
  isFull: boolean;
  /** It has missed changes meanwhile: it gets all rows when it has read. */
  isBehind: boolean;
}

/** Follows the stores for all pages that are open. While none is, it asks nothing and receives nothing. */
export class Hub {
  isClosed = false;
  private readonly seconds = new Seconds();
  private readonly streams = new Set<Stream>();
  private table = new LiveTable();
  private followers = new Map<string, Follower>();
  private notes: Note[] = [];
  private newNotes: Note[] = [];
  private releases: Note[] = [];
  private watching: AbortController | undefined;
  private beats = 0;
  /** The last report of the doctor on each store. It is kept when the last page is closed, for a page that is loaded again. */
  private readonly examinations = new Map<string, { readonly report: Promise<DoctorReport>; readonly until: number }>();

  /** @param nameOf hides what keys say, if the app wants that. @param isRedacted whether it does. */
  constructor(
    private readonly stores: ReadonlyMap<string, Locks>,
    private readonly nameOf: (key: string) => string,
    private readonly isRedacted = false,
  ) {}

  get isFull(): boolean {
    return this.streams.size >= MOST_STREAMS;
  }

  /** Sends a page all that it needs, until it goes. */
  open(response: ServerResponse, hello: Omit<Messages['hello'], 'version' | 'now' | 'stores'>): void {
    const stream: Stream = { response, endsAt: now() + LONGEST_STREAM, isFull: false, isBehind: false };
    this.streams.add(stream);
    response.on('close', () => this.leave(stream)).on('error', () => response.destroy());
    response.on('drain', () => (stream.isFull = false));
    send(stream, 'hello', { version: 1, now: Date.now(), stores: [...this.stores.keys()], ...hello });
    this.sendAll(stream);
    send(stream, 'stats', this.statsOf(this.seconds.all));
    send(stream, 'notes', this.notes);
    // What follows the stores outlives the request that opens the first page.
    detached(() => {
      if (!this.watching) this.start();
      this.followers.forEach((follower) => void follower.examine());
    });
  }

  /** Asks a store for a key, if a page is open. */
  ask(store: string, key: string): void {
    void this.followers.get(store)?.ask(key);
  }

  /** The last events of a key, the newest first. */
  notesOf(store: string, name: string): Note[] {
    const notes = [...this.notes, ...this.releases].filter((note) => note.store === store && note.key === name);
    return notes
      .reverse()
      .sort((a, b) => b.at - a.at)
      .slice(0, SHOWN_NOTES);
  }

  /** The last reports of the keys that somebody waits for. */
  reportsOf(store: string): KeyReport[] {
    return this.followers.get(store)?.reports ?? [];
  }

  close(): void {
    this.isClosed = true;
    for (const stream of this.streams) {
      send(stream, 'end', { reason: 'The process that served this page has ended.' });
      this.end(stream);
    }
  }

  private end(stream: Stream): void {
    stream.response.end();
    // A page that reads nothing would stay.
    after(GOODBYE, () => stream.response.destroy()).unref();
    this.leave(stream);
  }

  private leave(stream: Stream): void {
    this.streams.delete(stream);
    if (this.streams.size > 0) return;
    this.watching?.abort();
    this.watching = undefined;
    this.followers.clear();
    this.table = new LiveTable();
    this.releases = [];
  }

  private start(): void {
    const { signal } = (this.watching = new AbortController());
    const timer = setInterval(() => this.beat(), SECOND).unref();
    signal.addEventListener('abort', () => clearInterval(timer));
    const { table, nameOf } = this;
    for (const [store, locks] of this.stores) {
      const happened = (event: KeyEvent): void => this.happened(store, event);
      const doctor = (): Promise<DoctorReport> => this.doctorOf(store, locks);
      this.followers.set(store, new Follower({ store, locks, table, nameOf, happened, doctor }, signal));
    }
    this.followers.forEach((follower) => follower.beat());
  }

  /** The doctor takes locks of its own, so pages that are opened within a minute share its answer. */
  private doctorOf(store: string, locks: Locks): Promise<DoctorReport> {
    const known = this.examinations.get(store);
    if (known && now() < known.until) return known.report;
    const report = locks.doctor();
    report.catch(() => this.examinations.delete(store));
    this.examinations.set(store, { report, until: now() + MINUTE });
    return report;
  }

  private happened(store: string, event: KeyEvent): void {
    this.table.apply(store, event);
    this.seconds.add(event);
    const { event: name, key, label = null, owner, reason = null, at, app, host, pid, held = null } = event;
    if (!isNoteworthy(name)) return;
    const process = processOf(owner ?? { app, host, pid });
    const told = { at: at.getTime(), event: name, label, process, reason: this.isRedacted ? null : reason, held };
    const note = { store, key: this.nameOf(key), ...told };
    if (name !== 'released') this.newNotes.push(note);
    else if (this.releases.push(note) > MOST_RELEASES) this.releases = this.releases.slice(-MOST_RELEASES / 2);
  }

  private beat(): void {
    this.beats++;
    this.followers.forEach((follower) => follower.beat());
    const { put, drop } = this.table.takeChanges();
    const delta = { put: put.map((row) => this.named(row)), drop: drop.map((name) => this.named(name)) };
    const stats = this.statsOf([this.seconds.take(this.table)]);
    const notes = this.newNotes.splice(0);
    this.notes = [...this.notes, ...notes].slice(-MOST_NOTES);
    for (const stream of this.streams) {
      if (now() > stream.endsAt) {
        this.end(stream);
        continue;
      }
      if (stream.isFull) {
        stream.isBehind = true;
        continue;
      }
      if (stream.isBehind) this.sendAll(stream);
      else if (put.length + drop.length > 0) send(stream, 'delta', delta);
      send(stream, 'stats', stats);
      if (notes.length > 0) send(stream, 'notes', notes);
      if (this.beats % (HEARTBEAT / SECOND) === 0) stream.response.write(':\n\n');
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
    const followers = [...this.followers];
    const latency = Object.fromEntries(followers.map(([store, follower]) => [store, follower.latency]));
    return { seconds, processes, alerts: followers.flatMap(([, { alerts }]) => alerts), latency };
  }

  private named<T extends Row | RowName>(row: T): T {
    return { ...row, key: this.nameOf(row.key) };
  }
}

function send<E extends keyof Messages>(stream: Stream, event: E, message: Messages[E]): void {
  if (!stream.response.write(`event: ${event}\ndata: ${JSON.stringify(message)}\n\n`)) stream.isFull = true;
}

function isNoteworthy(event: KeyEvent['event']): event is Note['event'] {
  return ['lost', 'timeout', 'forced', 'failed', 'aborted', 'released'].includes(event);
}
