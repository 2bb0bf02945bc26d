import { randomInt } from 'node:crypto';
import { type Change, type Found, TOUCH, VOID } from '../records/record.table.js';

/** Versions are smaller: they must be exact in a double. */
const VERSIONS = 2 ** 47;

/** A row as it was found. */
export interface Stored {
  readonly version: number;
  readonly record: string | null;
  readonly fence: number;
}

/** A change under way. */
export class MysqlStep {
  readonly id: Buffer;
  readonly record: Buffer | null;
  /** Random: it is never the same again for a key, also not after its row was deleted. */
  readonly version = randomInt(1, VERSIONS);
  /** 0: the key must be void. */
  readonly expected: number;
  readonly found: Promise<Found>;
  resolve!: (found: Found) => void;
  reject!: (error: unknown) => void;

  constructor(readonly change: Change) {
    const { key, record, expected } = change;
    this.id = Buffer.from(key);
    this.record = record === null ? null : Buffer.from(record);
    // No row has a negative one.
    this.expected = expected === VOID ? 0 : Number(expected) || -1;
    this.found = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  get isRead(): boolean {
    return this.change.expected === undefined || this.isTouch;
  }

  get isTouch(): boolean {
    return this.change.expected === TOUCH;
  }

  /** A free key may be taken at once, so its row ends no later than the change says. */
  get endsAt(): number {
    const { record, endsAt } = this.change;
    return record === null ? Math.floor(endsAt) : Math.ceil(endsAt);
  }

  /** The columns that are written, and when. */
  get values(): unknown[] {
    const { tokens, fence, notBefore } = this.change;
    return [this.version, this.record, this.endsAt, tokens, tokens > 0 ? fence : 0, this.id, this.expected, notBefore];
  }

  /** The fence of a row that is new. */
  get firstFence(): number {
    const { tokens, fence } = this.change;
    return tokens > 0 ? Math.max(tokens, fence) : 0;
  }

  made(fence: number, time?: number): void {
    this.resolve({ written: true, version: String(this.version), record: this.change.record, fence, time });
  }

  /** The change was not made, or it was a read. */
  notMade(row: Stored | undefined, time: number): void {
    const { version = '', record = null, fence = 0 } = row ?? {};
    this.resolve({ written: false, version: String(version), record, fence, time });
  }
}
