import { randomUUID } from 'node:crypto';
import type { Bus } from '../../lib/core/store/inspector.js';
import { memoryBus } from '../../lib/stores/memory/memory.queue.js';
import type { CasChange, CasFound, CasRow, CasTable } from '../../lib/stores/records/observed/cas.table.js';
import { MapWakeUps } from './map-table.js';

/** What several tables share: each is a process of its own over it. */
export class CasMapData {
  readonly rows = new Map<string, CasRow>();
  readonly inboxes = new Map<string, (text: string) => void>();
  readonly bus = memoryBus();
  /** Of all writes. */
  count = 1;
  /** Another one is another store, with other rows under the same id. */
  name: string | undefined;
}

export interface CasMapTableOptions {
  /** Default: the same for all. Tables of one id know what the others have seen. */
  readonly storeId?: string;
  /** Whether it tells how many writes there were. Default: true. */
  readonly isCounted?: boolean;
  readonly isWoken?: boolean;
  readonly requestTimeout?: number;
  /** What happens to a change under way, as in {@link MapTableHooks}. */
  before?(change: CasChange): Promise<void> | void;
  after?(change: CasChange, found: CasFound): Promise<void> | void;
  /** Before the count is read. */
  beforeCount?(): Promise<void> | void;
}

/** The least table without a clock: a Map. */
export class CasMapTable implements CasTable {
  readonly name = 'map';
  readonly requestTimeout: number;
  readonly storeId: string;
  readonly bus: Bus;
  readonly wakeUps: MapWakeUps | undefined;
  readonly count: (() => Promise<number>) | undefined;
  private replaced = (_store?: string): void => undefined;

  constructor(
    readonly data = new CasMapData(),
    private readonly options: CasMapTableOptions = {},
  ) {
    const { storeId = 'map', isCounted = true, isWoken = true, requestTimeout = 1000 } = options;
    this.storeId = storeId;
    this.requestTimeout = requestTimeout;
    this.bus = data.bus;
    if (isWoken) this.wakeUps = new MapWakeUps(data);
    if (isCounted) {
      this.count = async () => {
        await options.beforeCount?.();
        if (data.name !== undefined) this.replaced(data.name);
        return data.count;
      };
    }
  }

  exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[] {
    return changes.map(async (change) => {
      await this.options.before?.(change);
      const found = this.apply(change);
      await this.options.after?.(change, found);
      if (this.data.name !== undefined) this.replaced(this.data.name);
      return found;
    });
  }

  onReplaced(listener: (store?: string) => void): void {
    this.replaced = listener;
  }

  /** Its connection breaks. */
  breaks(): void {
    this.replaced();
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    yield [...this.data.rows.keys()].filter((key) => key.startsWith(prefix));
  }

  sweep(count: number, isOver: (row: CasRow) => boolean): Promise<void> {
    for (const [key, row] of this.data.rows) if (row.revision! <= count && isOver(row)) this.data.rows.delete(key);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  protected apply({ key, expected, text, messages }: CasChange): CasFound {
    const { rows, inboxes } = this.data;
    const row = rows.get(key);
    if (expected === 'touch' && row) this.write(key, row.text);
    if (typeof expected === 'string' || expected.version !== row?.version) return { written: false, row: rows.get(key), ...this.told };
    const { version } = this.write(key, text);
    for (const { inbox, text: message } of messages) setImmediate(() => inboxes.get(inbox)?.(message));
    return { written: true, version, ...this.told };
  }

  private get told(): { readonly revision?: number } {
    return this.count ? { revision: this.data.count } : {};
  }

  private write(key: string, text: string): CasRow {
    this.data.count++;
    // Where writes are counted a version may be their count, which a restore sets back.
    const row = { version: this.count ? String(this.data.count) : randomUUID(), text, ...this.told };
    this.data.rows.set(key, row);
    return row;
  }
}
