import type { ServerResponse } from 'node:http';
import type { DoctorReport } from '../core/model/doctor-report.js';
import type { KeyReport } from '../core/model/key-report.js';
import { after, now } from '../core/util/clock.js';
import { detached } from '../core/util/detached.js';
import type { Locks } from '../locks.js';
import type { WatchedEvent } from '../operate/other-processes.js';
import { VERSION, type Alert, type Listing, type Messages } from './dashboard.protocol.js';
import { Follower } from './follower.js';
import { idOf, LiveTable, type LiveKey } from './live-table.js';
import { Notes, type Noted } from './notes.js';
import { Sums } from './numbers.js';

/** Milliseconds. */
const SECOND = 1000;
const MINUTE = 60_000;
/** A stream ends then, and the page opens another one: so a right that was taken away counts. */
const LONGEST_STREAM = 900_000;
const GOODBYE = 5_000;
/** Milliseconds for which the stores are followed after the last page, which may be loaded again. */
const LINGER = 60_000;
/** Rows of a message: other work goes on between two of them. */
const PART = 500;
/** Seconds of changes that a page has not read. */
const MOST_TODO = 30;
/** Pages, of all people, and of one. Those without a name share half of the places. */
const MOST_STREAMS = 100;
const MOST_OF_ONE = 10;

/** A page that looks. */
interface Stream {
  readonly response: ServerResponse;
  readonly by: string | null;
  /** A time of the monotonic clock. */
  readonly endsAt: number;
  /** It has not read yet what was sent. */
  isFull: boolean;
  /** It has no row yet. */
  isFirst: boolean;
  /** Keys whose rows it does not have as they are: all keys first, also those that are new meanwhile, and the changes of each second. */
  todo: Iterator<string>[];
}

/** Follows the stores for all pages that are open. While none is, it asks nothing and receives nothing. */
export class Hub {
  isClosed = false;
  private readonly streams = new Set<Stream>();
  private table = new LiveTable();
  private notes = new Notes();
  private sums = new Sums();
  private followers = new Map<string, Follower>();
  private watching: AbortController | undefined;
  private isPumping = false;
  /** When the stores are not followed any more, if no page comes. */
  private endsAt = Infinity;
  /** The last report of the doctor on each store. It is kept when the last page is closed, for a page that is loaded again. */
  private readonly examinations = new Map<string, { readonly report: Promise<DoctorReport>; readonly until: number }>();

  /** @param nameOf hides what keys say, if the app wants that. @param isRedacted whether it does. */
  constructor(
    private readonly stores: ReadonlyMap<string, Locks>,
    private readonly nameOf: (key: string) => string,
    private readonly isRedacted = false,
  ) {}

  /** Why this person gets no page; `undefined`: they get one. */
  refusal(by: string | null): string | undefined {
    if (this.streams.size >= MOST_STREAMS) return `${MOST_STREAMS} pages are open already.`;
    const most = by === null ? MOST_STREAMS / 2 : MOST_OF_ONE;
    const own = [...this.streams].filter((stream) => stream.by === by).length;
    return own < most ? undefined : `${own} pages of ${by ?? 'people without a name'} are open already: close one.`;
  }

  /** Sends a page all that it needs, until it goes. */
  open(response: ServerResponse, hello: Omit<Messages['hello'], 'version' | 'now' | 'stores'>): void {
    const endsAt = now() + LONGEST_STREAM;
    const stream: Stream = { response, by: hello.me.by, endsAt, isFull: false, isFirst: true, todo: [this.table.keys.keys()] };
    this.streams.add(stream);
    response.on('close', () => this.leave(stream)).on('error', () => response.destroy());
    response.on('drain', () => {
      stream.isFull = false;
      void this.pump();
    });
    send(stream, 'hello', { version: VERSION, now: Date.now(), stores: [...this.stores.keys()], ...hello });
    send(stream, 'notes', this.notes.all);
    // What follows the stores outlives the request that opens the first page.
    detached(() => {
      if (!this.watching) this.start();
      this.followers.forEach((follower) => void follower.examine());
      void this.pump();
    });
  }

  followerOf(store: string): Follower | undefined {
    return this.followers.get(store);
  }

  liveKey(store: string, key: string): LiveKey | undefined {
    return this.table.keys.get(idOf(store, key));
  }

  /** The last events of a key, the newest first. */
  notesOf(store: string, name: string): ReturnType<Notes['of']> {
    return this.notes.of(store, name);
  }

  /** A report of a key that was asked for at some time, for all pages. */
  reported(store: string, report: KeyReport, askedAt: number): void {
    if (this.followers.has(store)) this.table.replace(store, report, askedAt);
  }

  /** An event of a key, for all pages. One of the past says nothing of now. */
  happened(store: string, event: WatchedEvent): void {
    if (!event.firstAt) {
      this.table.apply(store, event);
      this.sums.add(event);
    }
    this.noted(store, event);
  }

  /** Keeps an event for operators, who look for it afterwards. */
  noted(store: string, event: Noted): void {
    this.notes.add(store, this.nameOf(event.key), event, this.isRedacted);
  }

  close(): void {
    this.isClosed = true;
    for (const stream of this.streams) {
      send(stream, 'end', { reason: 'The process that served this page has ended.' });
      this.end(stream);
    }
    this.stop();
  }

  private end(stream: Stream): void {
    stream.response.end();
    // A page that reads nothing would stay.
    after(GOODBYE, () => stream.response.destroy()).unref();
    this.leave(stream);
  }

  private leave(stream: Stream): void {
    this.streams.delete(stream);
    if (this.streams.size === 0) this.endsAt = now() + LINGER;
  }

  private stop(): void {
    this.watching?.abort();
    this.watching = undefined;
    this.followers.clear();
    [this.table, this.notes, this.sums] = [new LiveTable(this.nameOf), new Notes(), new Sums()];
  }

  private start(): void {
    this.stop();
    const { signal } = (this.watching = new AbortController());
    const timer = setInterval(() => this.beat(), SECOND).unref();
    signal.addEventListener('abort', () => clearInterval(timer));
    const { table, nameOf } = this;
    for (const [store, locks] of this.stores) {
      const happened = (event: WatchedEvent): void => this.happened(store, event);
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

  private beat(): void {
    if (this.streams.size === 0 && now() >= this.endsAt) return this.stop();
    this.followers.forEach((follower) => follower.beat());
    this.sums.beat();
    const changes = this.table.takeChanges();
    const notes = this.notes.take();
    if (this.streams.size === 0) return;
    // Each is made once for all pages.
    const delta = changes.size > 0 && changes.size <= PART ? textOf('delta', this.table.deltaOf(changes)) : undefined;
    const others = textOf('stats', JSON.stringify(this.stats())) + (notes.length > 0 ? textOf('notes', JSON.stringify(notes)) : '');
    for (const stream of this.streams) {
      if (now() > stream.endsAt) {
        this.end(stream);
        continue;
      }
      if (!stream.isFull && stream.todo.length === 0 && delta !== undefined) write(stream, delta);
      else if (changes.size > 0) stream.todo.push(changes.keys());
      // It reads so slowly that all is less.
      if (stream.todo.length > MOST_TODO) Object.assign(stream, { isFirst: true, todo: [this.table.keys.keys()] });
      if (!stream.isFull) write(stream, others);
    }
    void this.pump();
  }

  /** Sends the pages the rows that they do not have, a part at a time, while they read. */
  private async pump(): Promise<void> {
    if (this.isPumping) return;
    this.isPumping = true;
    const next = (): Stream | undefined => [...this.streams].find(({ isFull, todo }) => !isFull && todo.length > 0);
    for (let stream = next(); stream; stream = next()) {
      const ids = nextOf(stream);
      const { isFirst } = stream;
      stream.isFirst = false;
      if (isFirst || ids.length > 0) write(stream, textOf('delta', this.table.deltaOf(ids, isFirst)));
      await new Promise(setImmediate);
    }
    this.isPumping = false;
  }

  private stats(): Messages['stats'] {
    const { held, waiting, processes } = this.table.census();
    const followers = [...this.followers];
    const listings: Record<string, Listing> = Object.fromEntries(followers.map(([store, { listing }]) => [store, listing]));
    const isListed = Object.values(listings).every(({ state }) => state === 'whole' || state === 'cut');
    const [lost, timeouts] = [this.notes.recent('lost'), this.notes.recent('timeout')];
    const counts = { held: isListed ? held : null, waiting: isListed ? waiting : null };
    return {
      numbers: { ...counts, waitP95: this.sums.highestWait, lost, timeouts },
      costly: this.sums.costly,
      processes,
      alerts: [...lossesIn(lost), ...followers.flatMap(([, { alerts }]) => alerts)],
      latency: Object.fromEntries(followers.map(([store, follower]) => [store, follower.latency])),
      listings,
    };
  }
}

/** The keys of the next message. */
function nextOf({ todo }: Stream): string[] {
  const ids: string[] = [];
  while (todo[0] && ids.length < PART) {
    const next = todo[0].next();
    if (next.done) todo.shift();
    else ids.push(next.value);
  }
  return ids;
}

function lossesIn(lost: number): Alert[] {
  if (lost === 0) return [];
  return [{ kind: 'lost', text: `${lost} ${lost === 1 ? 'lease was' : 'leases were'} lost in the last five minutes: see the events.` }];
}

function textOf(event: keyof Messages, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}

function write(stream: Stream, text: string): void {
  if (!stream.response.write(text)) stream.isFull = true;
}

function send<E extends keyof Messages>(stream: Stream, event: E, message: Messages[E]): void {
  write(stream, textOf(event, JSON.stringify(message)));
}
