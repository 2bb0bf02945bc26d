import { randomUUID } from 'node:crypto';
import type { Bus } from '../../lib/core/store/inspector.js';
import { memoryBus } from '../../lib/stores/memory/memory.queue.js';
import { readMessage } from '../../lib/stores/records/record.texts.js';
import { type Change, type Found, type RecordTable, type RecordWakeUps, TOUCH, VOID } from '../../lib/stores/records/record.table.js';

interface Row {
  readonly version: string;
  readonly record: string | null;
  readonly endsAt: number;
  readonly fence: number;
}

/** What several tables share: each is a process of its own over it. */
export class MapData {
  readonly rows = new Map<string, Row>();
  readonly inboxes = new Map<string, (text: string) => void>();
  readonly bus = memoryBus();
  /** Milliseconds by which the table's clock is ahead of ours, which is the wall's or nearly. */
  offset = Date.now() - performance.now();
}

/** What happens to a change under way. Each may take its time, or throw: then the request, or the reply, is lost. */
export interface MapTableHooks {
  before?(change: Change): Promise<void> | void;
  after?(change: Change, found: Found): Promise<void> | void;
}

/** The least table: a Map. Requests are applied in their order, unless the hooks delay some. */
export class MapTable implements RecordTable {
  readonly name = 'map';
  readonly bus: Bus;
  readonly wakeUps?: RecordWakeUps;

  constructor(
    readonly data = new MapData(),
    readonly hooks: MapTableHooks = {},
    readonly requestTimeout = 1000,
    isWoken = true,
  ) {
    this.bus = data.bus;
    if (isWoken) this.wakeUps = new MapWakeUps(data);
  }

  /** The table's clock. */
  get time(): number {
    return performance.now() + this.data.offset;
  }

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    return changes.map(async (change) => {
      await this.hooks.before?.(change);
      const found = this.apply(change);
      await this.hooks.after?.(change, found);
      return found;
    });
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    yield [...this.data.rows.keys()].filter((key) => key.startsWith(prefix));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  protected apply({ key, expected, record, endsAt, notBefore, tokens, fence, messages }: Change): Found {
    const { time } = this;
    const { rows, inboxes } = this.data;
    const row = rows.get(key);
    const isVoid = !row || row.endsAt <= time;
    const last = row?.fence ?? 0;
    if (expected === TOUCH && row) rows.set(key, { ...row, version: randomUUID() });
    if (expected === undefined || notBefore > time || !(expected === VOID ? isVoid : expected === row?.version)) {
      return { written: false, version: rows.get(key)?.version ?? '', record: isVoid ? null : row.record, fence: last, time };
    }
    const next = { version: randomUUID(), record, endsAt, fence: tokens > 0 ? Math.max(last + tokens, fence) : last };
    rows.set(key, next);
    for (const { inbox, text } of messages) setImmediate(() => inboxes.get(inbox)?.(text));
    return { written: true, version: next.version, record, fence: next.fence, time };
  }
}

export class MapWakeUps implements RecordWakeUps {
  readonly inbox = randomUUID();
  isOpen = false;
  private readonly listeners = new Map<string, (askIn?: number) => void>();

  constructor(private readonly data: Pick<MapData, 'inboxes'>) {}

  open(): Promise<void> {
    this.data.inboxes.set(this.inbox, (text) => this.received(text));
    this.isOpen = true;
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
