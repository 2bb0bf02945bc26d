// What runs inside of the simulated processes: apps with the code of lib and the loads of the chaos runs, and servers with a table.
import { Locks, StoreError, type LockStore } from '../../lib/core.js';
import { inTime } from '../../lib/core/util/clock.js';
import { quorumStore } from '../../lib/stores/quorum/quorum.store.js';
import { observedTable, recordStore, type CasChange, type CasFound, type CasTable } from '../../lib/stores/records/record.store.js';
import type { Change, Found, RecordTable } from '../../lib/stores/records/record.store.js';
import type { Fact, Kind } from '../chaos/history/entry.js';
import { Random } from '../chaos/random.js';
import type { StoredRecord } from '../chaos/stores/records/leftovers.js';
import { Context } from '../chaos/worker/context.js';
import { runLoads } from '../chaos/worker/loads.js';
import { QUARANTINE } from './faults.js';
import { CasMapData, CasMapTable } from '../support/cas-map-table.js';
import { MapData, MapTable, MapWakeUps } from '../support/map-table.js';

export type StoreKind = 'records' | 'observed' | 'quorum';
/** Whether its table has a clock, counts its writes, or has neither. */
export type ServerKind = 'clock' | 'count' | 'neither';

export interface Request {
  readonly verb: 'exchange' | 'count' | 'listen' | 'age';
  readonly change?: Change | CasChange;
  readonly inbox?: string;
}

/** What an app can do in the world. */
export interface Port {
  ask(server: number, request: Request, answered: (reply: never) => void): void;
  note(fact: Fact, t?: number): void;
  counter(key: string): { value: number };
  readonly jobs: Map<string, string[]>;
  readonly fenced: { read(key: string, token: number): number | undefined; write(key: string, token: number, read: number): boolean };
}

export interface Order {
  readonly id: string;
  readonly seed: string;
  readonly kinds: Kind[];
  readonly store: StoreKind;
  readonly servers: readonly ServerKind[];
  /** Whether a server may come back empty. */
  readonly forgets: boolean;
}

export interface App {
  stop(): Promise<void>;
  received(inbox: string, text: string): void;
  /** The connection to a server breaks. */
  cut(server: number): void;
}

const SHUTDOWN_TIMEOUT = 3_000;

export function startApp(order: Order, port: Port): App {
  const random = new Random(order.seed);
  const connections = order.servers.map((_, server) => new Connection(port, server));
  const stopping = new AbortController();
  const opened = Array.from({ length: random.int(1, 2) }, () => {
    const requestTimeout = random.pick([300, 600, 1_000]);
    const isWoken = random.chance(0.9);
    const tables = connections.map((each, i) => {
      const kind = order.servers[i]!;
      const wakeUps = isWoken ? new NetWakeUps(each) : undefined;
      return kind === 'clock'
        ? new NetTable(each, requestTimeout, wakeUps)
        : observedTable(new NetCasTable(each, requestTimeout, wakeUps, kind === 'count'));
    });
    const stores = tables.map((table, i) => {
      const store = recordStore(table);
      const late = (): StoreError => new StoreError('The server does not say its age.', { transient: true });
      const remembers = (): Promise<number> => inTime(requestTimeout, connections[i]!.ask<number>({ verb: 'age' }), late);
      return order.forgets ? Object.assign(store, { remembers }) : store;
    });
    const store: LockStore = order.store === 'quorum' ? quorumStore(stores, { quarantine: QUARANTINE }) : stores[0]!;
    return new Locks(store, {
      app: `app-${order.id}`,
      logger: { warn: () => undefined, error: (detail) => port.note({ e: 'trouble', what: 'logged', detail: String(detail) }) },
      shutdownTimeout: SHUTDOWN_TIMEOUT,
      localQueue: { handOvers: random.int(1, 32), time: random.pick([0, 10, 50, 200]) },
    });
  });
  const context = new Context(
    { id: order.id, kinds: order.kinds, folder: '' },
    random.fork('load'),
    { write: (fact, t) => port.note(fact, t) },
    opened,
    {
      rpush: (name, ...jobs) => Promise.resolve(listOf(port, name).push(...jobs.map(String))),
      lpop: (name) => Promise.resolve(listOf(port, name).shift() ?? null),
    },
    {
      read: (key, token) => later(random, () => port.fenced.read(key, token)),
      write: (key, token, read) => later(random, () => port.fenced.write(key, token, read)),
    },
    stopping.signal,
    (key) => counterOf(port, key),
  );
  port.note({ e: 'started', pid: process.pid });
  const running = runLoads(context);
  return {
    async stop() {
      stopping.abort();
      if (random.fork('stop').chance(0.5)) await Promise.race([running, context.pause(1_500)]);
      const bound = SHUTDOWN_TIMEOUT + 5 * Math.max(...opened.map(({ store }) => store.requestTimeout));
      port.note({ e: 'closing', bound });
      await Promise.all(opened.map((locks) => locks.close()));
      port.note({ e: 'closed' });
      await running;
    },
    received: (inbox, text) => connections.forEach((each) => each.inboxes.get(inbox)?.(text)),
    cut: (server) => connections[server]!.cut(),
  };
}

function listOf({ jobs }: Port, name: string): string[] {
  if (!jobs.has(name)) jobs.set(name, []);
  return jobs.get(name)!;
}

async function later<T>(random: Random, work: () => T): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, 1 + random.int(0, random.chance(0.05) ? 300 : 2)));
  return work();
}

function counterOf(port: Port, key: string) {
  const at = (): number => Number(process.hrtime.bigint()) / 1e6;
  return {
    read: () => port.counter(key).value,
    writeIfValid(value: number, remaining: () => number) {
      const left = remaining();
      if (left <= 0) return undefined;
      port.counter(key).value = value;
      return { checked: at(), remaining: left, done: at() };
    },
    close: () => undefined,
  };
}

/** From an app to one server. What is under way when it breaks may have been done. */
class Connection {
  readonly inboxes = new Map<string, (text: string) => void>();
  /** Called when it breaks. */
  readonly cuts = new Set<() => void>();
  private readonly open = new Set<() => void>();

  constructor(
    private readonly port: Port,
    readonly server: number,
  ) {}

  ask<T>(request: Request): Promise<T> {
    return new Promise((resolve, reject) => {
      const broke = (): void => reject(new StoreError('The connection broke.', { transient: true }));
      this.open.add(broke);
      this.port.ask(this.server, request, (reply: T | 'refused') => {
        this.open.delete(broke);
        if (reply === 'refused') reject(new StoreError('The server refuses.', { transient: true, isUnsent: true, isRefusal: true }));
        else resolve(reply);
      });
    });
  }

  cut(): void {
    for (const broke of [...this.cuts, ...this.open]) broke();
    this.open.clear();
  }
}

class NetWakeUps extends MapWakeUps {
  constructor(private readonly connection: Connection) {
    super(connection);
  }

  override async open(): Promise<void> {
    if (this.isOpen) return;
    void super.open();
    await this.connection.ask({ verb: 'listen', inbox: this.inbox }).catch(() => (this.isOpen = false));
  }
}

class NetTable implements RecordTable {
  readonly name = 'simulated';

  constructor(
    private readonly connection: Connection,
    readonly requestTimeout: number,
    readonly wakeUps: NetWakeUps | undefined,
  ) {}

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    return changes.map((change) => this.connection.ask<Found>({ verb: 'exchange', change }));
  }

  async close(): Promise<void> {}
}

class NetCasTable implements CasTable {
  readonly name = 'simulated';
  readonly storeId: string;
  readonly count?: () => Promise<number>;

  constructor(
    private readonly connection: Connection,
    readonly requestTimeout: number,
    readonly wakeUps: NetWakeUps | undefined,
    counts: boolean,
  ) {
    this.storeId = `server ${connection.server}`;
    const late = (): StoreError => new StoreError('The server does not count.', { transient: true });
    if (counts) this.count = () => inTime(requestTimeout, connection.ask<number>({ verb: 'count' }), late);
  }

  /** Where nothing is counted, the end of a connection is all that tells of another store. */
  onReplaced(listener: () => void): void {
    if (!this.count) this.connection.cuts.add(listener);
  }

  exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[] {
    return changes.map((change) => this.connection.ask<CasFound>({ verb: 'exchange', change }));
  }

  async close(): Promise<void> {}
}

/** A server and what it keeps. What was changed lazily may be lost when it crashes. */
export interface Server {
  readonly inboxes: Map<string, (text: string) => void>;
  answer(request: Request): unknown;
  crash(): void;
  /** Comes back with nothing, if it is one that says so. */
  empty(): void;
  /** Keeps what is there. @returns a function that brings it back. */
  backup(): () => void;
  /** Sets its clock. */
  jump(by: number): void;
  /** Its clock, by which rows end. */
  readonly time: number;
  rows(): StoredRecord[];
  row(key: string): StoredRecord;
}

export function startServer(kind: ServerKind): Server {
  return kind === 'clock' ? new TableServer() : new CasServer(kind === 'count');
}

class TableServer extends MapTable implements Server {
  readonly inboxes = this.data.inboxes;
  private lazy: (() => void)[] = [];
  private emptyAt = -Infinity;

  constructor() {
    super(new MapData());
  }

  answer({ verb, change, inbox }: Request): unknown {
    if (verb === 'listen') return inbox;
    if (verb === 'age') return performance.now() - this.emptyAt;
    const { key, isLazy } = change as Change;
    const row = this.data.rows.get(key);
    const found = this.apply(change as Change);
    if (found.written && isLazy) this.lazy.push(() => (row ? this.data.rows.set(key, row) : this.data.rows.delete(key)));
    // What is written for good is written with all that was before it.
    else if (found.written) this.lazy = [];
    return found;
  }

  crash(): void {
    for (const undo of this.lazy.reverse()) undo();
    this.lazy = [];
    this.inboxes.clear();
  }

  empty(): void {
    this.crash();
    this.data.rows.clear();
    this.emptyAt = performance.now();
  }

  backup(): () => void {
    return restore(this.data.rows);
  }

  jump(by: number): void {
    this.data.offset += by;
  }

  rows() {
    return [...this.data.rows.keys()].map((key) => this.row(key));
  }

  row(key: string) {
    const { record, endsAt } = this.data.rows.get(key) ?? { record: null, endsAt: 0 };
    return { key, record, endsAt };
  }
}

class CasServer extends CasMapTable implements Server {
  readonly inboxes = this.data.inboxes;

  constructor(isCounted: boolean) {
    super(new CasMapData(), { isCounted });
  }

  answer({ verb, change, inbox }: Request): unknown {
    if (verb === 'listen') return inbox;
    if (verb === 'age') return Infinity;
    return verb === 'count' ? this.data.count : this.apply(change as CasChange);
  }

  crash(): void {
    this.inboxes.clear();
  }

  /** Its table tells the age of leases by what it has counted, which it must not forget. */
  empty(): void {
    this.crash();
  }

  backup(): () => void {
    const { count } = this.data;
    const rows = restore(this.data.rows);
    return () => {
      rows();
      this.data.count = count;
    };
  }

  jump(): void {}

  readonly time = 0;

  /** What they have does not say when it ends. */
  rows() {
    return [];
  }

  row(key: string) {
    return { key, record: null, endsAt: 0 };
  }
}

function restore<Row>(rows: Map<string, Row>): () => void {
  const kept = [...rows];
  return () => {
    rows.clear();
    for (const [key, row] of kept) rows.set(key, row);
  };
}
