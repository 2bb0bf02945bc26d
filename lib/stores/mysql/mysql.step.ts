import { randomInt } from 'node:crypto';
import { type Change, type Found, TOUCH, VOID } from '../records/record.table.js';

/** Bytes of records in one statement: a server takes 16 MB, written in hexadecimal. */
const LARGEST = 2 ** 20;
/** Of a version, which is exact in a double. */
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

  get isLook(): boolean {
    return this.change.expected === undefined || this.isTouch;
  }

  get isTouch(): boolean {
    return this.change.expected === TOUCH;
  }

  /** What is free may be taken at once, so it ends no later than it was said to. */
  get endsAt(): number {
    const { record, endsAt } = this.change;
    return record === null ? Math.floor(endsAt) : Math.ceil(endsAt);
  }

  /** The columns that are written, and when. */
  get values(): unknown[] {
    const { tokens, fence, notBefore } = this.change;
    return [this.version, this.record, this.endsAt, tokens, tokens > 0 ? fence : 0, this.id, this.expected, notBefore];
  }

  made(fence: number, time?: number): void {
    this.resolve({ written: true, version: String(this.version), record: this.change.record, fence, time });
  }
}

/** So that each statement is short enough. */
export function inParts(steps: readonly MysqlStep[]): MysqlStep[][] {
  const parts: MysqlStep[][] = [];
  let size = Infinity;
  for (const step of steps) {
    size += step.record?.length ?? 0;
    if (size > LARGEST) {
      parts.push([]);
      size = step.record?.length ?? 0;
    }
    parts.at(-1)!.push(step);
  }
  return parts;
}

export function foundIn(row: Stored | undefined, time: number): Found {
  if (!row) return { written: false, version: '', record: null, fence: 0, time };
  return { written: false, version: String(row.version), record: row.record, fence: row.fence, time };
}

/** Of a row that is new. */
export function firstFenceOf({ change: { tokens, fence } }: MysqlStep): number {
  return tokens > 0 ? Math.max(tokens, fence) : 0;
}
