import { TopicBus } from '../../core/store/topic-bus.js';
import { after, HOUR, now } from '../../core/util/clock.js';
import type { RecordQueue } from '../records/record.queue.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { RecordWork, type KeyRecord } from '../records/record.work.js';

/** Milliseconds between two sweeps. */
const SWEEP = 1000;
/** Milliseconds for which the last token of a free read/write lock is remembered: readers get it. */
const TOKEN_LIFETIME = HOUR;

interface Row {
  /** `undefined`: the key is free. */
  record: KeyRecord | undefined;
  fence: number;
  /** When the row may be forgotten. */
  endsAt: number;
}

/** The records in the memory of one process. Each step is done at once, and nothing gets in its way. */
export class MemoryRecordQueue implements RecordQueue {
  private readonly rows = new Map<string, Row>();
  /** The last token of all keys: larger ones follow, also if the wall clock is set back. */
  private lastToken = 0;
  private sweeper: NodeJS.Timeout | undefined;

  constructor(private readonly wakeUps: MemoryWakeUps) {}

  ask<Reply>(key: string, step: (work: RecordWork) => Reply): Promise<Reply> {
    const early = now();
    const row = this.rows.get(key);
    const micros = Math.max(this.lastToken + 1, Date.now() * 1000);
    const work = new RecordWork(key, row?.record, { early, late: early, micros }, row?.fence ?? 0);
    let reply: Reply;
    try {
      reply = step(work);
    } catch (error) {
      return Promise.reject(error);
    }
    if (work.isChanged) this.keep(key, row, work);
    return Promise.resolve(reply);
  }

  /** The keys that are in use. */
  *keys(prefix: string): Generator<string> {
    for (const [key, { record }] of this.rows) if (record && key.startsWith(prefix)) yield key;
  }

  private keep(key: string, row: Row | undefined, work: RecordWork): void {
    const { record, endsAt, fence } = work;
    if (work.tokens > 0) this.lastToken = Math.max(this.lastToken, fence);
    if (endsAt > 0) {
      if (row) Object.assign(row, { record, fence, endsAt });
      else this.rows.set(key, { record, fence, endsAt });
    } else if (record?.kind === 'read/write lock' && fence > 0)
      this.rows.set(key, { record: undefined, fence, endsAt: work.time.early + TOKEN_LIFETIME });
    else this.rows.delete(key);
    for (const lines of work.messages?.values() ?? []) for (const line of lines) this.wakeUps.received(line);
    this.sweepLater();
  }

  /** Without it, an expired key that nobody asks for would stay in memory. */
  private sweepLater(): void {
    this.sweeper ??= after(SWEEP, () => {
      this.sweeper = undefined;
      const time = now();
      for (const [key, { endsAt, record, fence }] of this.rows) {
        if (endsAt > time) continue;
        if (record?.kind === 'read/write lock') this.rows.set(key, { record: undefined, fence, endsAt: time + TOKEN_LIFETIME });
        else this.rows.delete(key);
      }
      if (this.rows.size > 0) this.sweepLater();
    }).unref();
  }
}

/** Within a process a callback is all it takes. */
export class MemoryWakeUps implements RecordWakeUps {
  readonly isOpen = true;
  readonly inbox = 'memory';
  private readonly listeners = new Map<string, (askIn?: number) => void>();

  open(): Promise<void> {
    return Promise.resolve();
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => void this.listeners.delete(owner);
  }

  /** Later, as a message would come: not in the midst of a step. */
  received(text: string): void {
    readMessage(text, (owner, askIn) => queueMicrotask(() => this.listeners.get(owner)?.(askIn)));
  }
}

/** Messages between the {@link Locks} of one process. */
export function memoryBus(): TopicBus {
  const bus: TopicBus = new TopicBus({
    connection: 'memory',
    open: () => Promise.resolve(true),
    // Later, as a message would come.
    publish(topic, text) {
      if (!bus.isListenedTo(topic)) return Promise.resolve(0);
      queueMicrotask(() => bus.received(topic, text));
      return Promise.resolve(1);
    },
  });
  return bus;
}
