import { LockConfigError } from '../../core/model/errors.js';
import { after, now } from '../../core/util/clock.js';

/** Milliseconds between two sweeps. */
const SWEEP = 1000;

interface MemoryRecord {
  /** What kind of lock the key is used as. */
  readonly kind: string;
  /** Drops what has expired, and returns whether nothing is left. */
  isOver(time: number): boolean;
}

/** What this process knows of each key. A key is one kind of lock at a time, because two kinds would not exclude each other. */
export class MemoryRecords {
  private readonly records = new Map<string, MemoryRecord>();
  private sweeper: NodeJS.Timeout | undefined;

  /** @throws {LockConfigError} when the key is in use as another kind of lock. */
  open<T extends MemoryRecord>(key: string, kind: T['kind'], time: number): T | undefined {
    const record = this.live(key, time);
    if (record && record.kind !== kind) {
      throw new LockConfigError(`"${key}" is in use as a ${record.kind}: it cannot be a ${kind} at the same time.`, { key });
    }
    return record as T | undefined;
  }

  /** A key that is in use as another kind of lock is not found. */
  find<T extends MemoryRecord>(key: string, kind: T['kind'], time: number): T | undefined {
    const record = this.live(key, time);
    return record?.kind === kind ? (record as T) : undefined;
  }

  add<T extends MemoryRecord>(key: string, record: T): T {
    this.records.set(key, record);
    this.sweepLater();
    return record;
  }

  delete(key: string): void {
    this.records.delete(key);
  }

  /** Whatever it is. */
  look<T extends MemoryRecord>(key: string, time: number): T | undefined {
    return this.live(key, time) as T | undefined;
  }

  keys(): string[] {
    return [...this.records.keys()];
  }

  private live(key: string, time: number): MemoryRecord | undefined {
    const record = this.records.get(key);
    if (!record?.isOver(time)) return record;
    this.records.delete(key);
    return undefined;
  }

  /** Without it, an expired key that nobody asks for would stay in memory. */
  private sweepLater(): void {
    this.sweeper ??= after(SWEEP, () => {
      this.sweeper = undefined;
      for (const key of this.records.keys()) this.live(key, now());
      if (this.records.size > 0) this.sweepLater();
    }).unref();
  }
}
