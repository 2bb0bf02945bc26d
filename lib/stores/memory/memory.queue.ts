import { after, HOUR, now } from '../../core/util/clock.js';
import type { RecordQueue } from '../records/record.queue.js';
import { RecordWork, type KeyRecord } from '../records/record.work.js';
import type { MemoryWakeUps } from './memory.wakeups.js';

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
