import { StoreError } from '../../../../lib/core/model/errors.js';
import type { CasChange, CasFound, CasRow, CasTable } from '../../../../lib/stores/records/observed/cas.table.js';
import type { RecordWakeUps } from '../../../../lib/stores/records/record.table.js';
import { readMessage } from '../../../../lib/stores/records/record.texts.js';
import type { SimulatedProcess, SimulatedTime } from './simulated-time.js';

/** How requests get to the store and back. Shares of all of them. */
export interface Network {
  /** Requests that are lost, and so many replies. */
  readonly lost: number;
  /** What is up to three seconds under way. */
  readonly late: number;
}

/** What the network may delay, milliseconds. */
export const LATEST = 3000;
export const REQUEST_TIMEOUT = 400;

/** A store that compares and sets. It counts its writes, if it can. */
export class SimulatedStore {
  rows = new Map<string, CasRow>();
  count = 1;
  /** No request reaches it. */
  isAway = false;
  /** How often it was restored from a copy. */
  restores = 0;
  /** Somebody could not notice a restore: the count was as large again when it heard of it first. Then nothing is promised. */
  isUnnoticed = false;
  /** Rows that sweeps have deleted. */
  swept = 0;
  readonly inboxes = new Map<string, (text: string) => void>();
  /** Requests that have not arrived, each with the last restore that its sender knew of. */
  readonly underWay = new Set<{ readonly restores: number }>();
  private versions = 0;

  constructor(
    readonly time: SimulatedTime,
    readonly network: Network,
    readonly isCounted: boolean,
  ) {}

  copy(): () => void {
    const [rows, count] = [new Map(this.rows), this.count];
    return () => {
      this.rows = rows;
      this.count = count;
      this.restores++;
    };
  }

  apply(change: CasChange): CasFound {
    const { key, expected, text, messages } = change;
    const row = this.rows.get(key);
    if (expected === 'touch' && row) this.write(key, row.text);
    if (typeof expected === 'string' || expected.version !== row?.version) return { written: false, row: this.rows.get(key), ...this.told };
    const { version } = this.write(key, text);
    for (const message of messages) {
      if (this.time.random() >= 5 * this.network.lost)
        this.time.in(this.delay(), undefined, () => this.inboxes.get(message.inbox)?.(message.text));
    }
    return { written: true, version, ...this.told };
  }

  get told(): { revision?: number } {
    return this.isCounted ? { revision: this.count } : {};
  }

  delay(): number {
    const { random } = this.time;
    return random() < this.network.late ? random() * LATEST : random() < 0.05 ? random() * 100 : 0.1 + random() * 4;
  }

  /** A version of a store that counts is its count, which a restore sets back. */
  private write(key: string, text: string): CasRow {
    const version = String(this.isCounted ? ++this.count : ++this.versions);
    const row = { version, text, ...this.told };
    this.rows.set(key, row);
    return row;
  }
}

/** The store as one process reaches it. */
export class SimulatedTable implements CasTable {
  readonly name = 'simulated';
  readonly requestTimeout = REQUEST_TIMEOUT;
  readonly place: string;
  readonly wakeUps: RecordWakeUps | undefined;
  readonly count?: () => Promise<number>;
  /** The last restore that it knows of. */
  restores: number;
  /** The largest count that it was told, and how often it had to forget it. */
  private told = { count: 0, times: 0 };

  constructor(
    private readonly store: SimulatedStore,
    private readonly process: SimulatedProcess,
    isWoken: boolean,
  ) {
    this.restores = store.restores;
    this.place = `simulated ${++places}`;
    if (isWoken) this.wakeUps = new SimulatedWakeUps(store, process);
    if (store.isCounted) this.count = () => this.send(() => store.count).catch((error: unknown) => this.forget(error));
  }

  exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[] {
    return changes.map((change) => this.send(() => this.store.apply(change)));
  }

  async sweep(count: number, isOver: (row: CasRow) => boolean): Promise<void> {
    const { store } = this;
    const old = await this.send(() => [...store.rows].filter(([, row]) => row.revision! <= count && isOver(row)));
    await this.send(() => {
      for (const [key, { version }] of old) if (store.rows.get(key)?.version === version && store.rows.delete(key)) store.swept++;
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Does the work at the store. The promise may never settle. */
  private send<T>(work: () => T): Promise<T> {
    const { store, process } = this;
    const { time } = store;
    const isLost = (): boolean => time.random() < store.network.lost;
    return new Promise((resolve, reject) => {
      if (isLost()) return;
      const request = { restores: this.restores };
      const { told } = this;
      store.underWay.add(request);
      time.in(store.delay(), undefined, () => {
        store.underWay.delete(request);
        if (store.isAway) {
          time.in(1, process, () => reject(new StoreError('The store is away.', { transient: true })));
          return;
        }
        const reply = work();
        const { restores, count } = store;
        if (isLost()) return;
        time.in(store.delay(), process, () => {
          if (told.times === this.told.times) this.hear(restores, count, told.count);
          resolve(reply);
        });
      });
    });
  }

  /** @param least what it was told when it asked. */
  private hear(restores: number, count: number, least: number): void {
    const { times } = this.told;
    if (restores > this.restores && this.store.isCounted && least > 0 && count >= least) this.store.isUnnoticed = true;
    this.restores = restores;
    this.told = count < least ? { count, times: times + 1 } : { count: Math.max(count, this.told.count), times };
  }

  private forget(error: unknown): never {
    this.told = { count: 0, times: this.told.times + 1 };
    throw error;
  }
}

let places = 0;

class SimulatedWakeUps implements RecordWakeUps {
  readonly isOpen = true;
  readonly inbox: string;
  private readonly listeners = new Map<string, (askIn?: number) => void>();

  constructor(store: SimulatedStore, process: SimulatedProcess) {
    this.inbox = process.name;
    store.inboxes.set(this.inbox, (text) => store.time.in(0, process, () => this.received(text)));
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => this.listeners.delete(owner);
  }

  received(text: string): void {
    readMessage(text, (owner, askIn) => this.listeners.get(owner)?.(askIn));
  }
}
