import type { Bus } from '../../core/store/inspector.js';
import type { WakeUps } from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import type { StoreDoctor } from '../../core/store/store-doctor.js';
import { now } from '../../core/util/clock.js';
import type { TableTime } from './record.work.js';

/** Stands in {@link Change.expected} for a key without a record, or with one that has ended by the table's clock. */
export const VOID = 'void';

/** Stands in {@link Change.expected} for a change of the version alone, so that changes under way fail. The row is then read. */
export const TOUCH = 'touch';

/** Milliseconds between two sweeps, at least; twice as many at most. */
const INTERVAL = 300_000;

/** A message to a process. It is sent if and only if its change is made, after the change can be seen. */
export interface Message {
  readonly inbox: string;
  readonly text: string;
}

/** One atomic step on one key: a compare-and-set, or a read. */
export interface Change {
  readonly key: string;
  /**
   * The version that must still be there, or {@link VOID}. {@link TOUCH}: only the version is changed, if there is a row. `undefined`: the row is
   * only read. In both cases the row is returned, and not `written`.
   */
  readonly expected: string | undefined;
  /** `null`: the key is free. Its row stays for an hour, because of the fence. */
  readonly record: string | null;
  /** When the record ends, in milliseconds of the table's clock. */
  readonly endsAt: number;
  /** The change is made only once the table's clock is not before this; 0, as always with {@link VOID}: at any time. */
  readonly notBefore: number;
  /** How many fencing tokens to reserve. If any, the fence becomes the larger one of `fence` and its old value plus `tokens`; else it stays. */
  readonly tokens: number;
  readonly fence: number;
  readonly messages: readonly Message[];
  /** The change may be lost in a crash of the server. Grants, renewals and a `minHold` may not. */
  readonly isLazy: boolean;
}

/** The row after a {@link Change} or a read. */
export interface Found {
  /** False: it was only read, or another change was faster. */
  readonly written: boolean;
  /** The version of the row now. A key never has the same version twice, also not after its row was deleted. '': there is no row. */
  readonly version: string;
  /** `null`: the key is free, or its record has ended. After a change that was made it is not read. */
  readonly record: string | null;
  /** The last fencing token that was reserved; 0: none is known. */
  readonly fence: number;
  /** The table's clock, in milliseconds, at a time between the request and the reply. A read must have it, unless the table has no clock. */
  readonly time: number | undefined;
}

/** A connection on which a process can be woken. */
export interface RecordWakeUps extends WakeUps {
  /** Where messages to this process go; no spaces or line ends. */
  readonly inbox: string;
  /** Wakes the owners that the text of a message names, with `readMessage`. */
  received(text: string): void;
}

/**
 * The part that differs from store to store: it keeps one record for each key, and changes it only if nobody else has changed it in the meantime. All
 * kinds of locks work on that.
 */
export interface RecordTable extends Pick<LockStore, 'name' | 'requestTimeout' | 'onWarning' | 'close'> {
  /**
   * Makes each change that is still possible. The changes are of different keys, and independent of each other: none is made or fails because of
   * another one. An answer may take as long as it needs; the caller waits for a `requestTimeout`.
   *
   * @returns one promise for each change. It rejects with a `StoreError`: the outcome is unknown, unless the error `isUnsent`.
   */
  exchange(changes: readonly Change[]): readonly Promise<Found>[];
  /** How many calls of {@link exchange} it can serve at a time. Changes that come meanwhile go together with the next call. Default: any number. */
  readonly atOnce?: number | undefined;
  /** Only of a table without a clock, which `observedTable()` makes. */
  readonly observedTime?: () => TableTime;
  /** Without it, waiters ask from time to time. */
  readonly wakeUps?: RecordWakeUps | undefined;
  /** Without it, an operator sees only what the table knows. */
  readonly bus?: Bus | undefined;
  /** The keys with this prefix that were used in the last hour, some at a time. Without it, `list` throws an `UnsupportedPrimitiveError`. */
  keys?(prefix: string): AsyncIterable<readonly string[]>;
  /** Examines the database. */
  readonly doctor?: StoreDoctor | undefined;
  /** Keeps a line about a key that an operator took away. */
  note?(line: string): Promise<void>;
}

/** Deletes what ended an hour ago, from time to time: every process does it, at random times. */
export class RecordSweep {
  /** One of so many processes sweeps with its first request: processes that end soon, as cron jobs do, would never sweep. Set in tests. */
  static firstOf = 20;
  private at = Math.random() * RecordSweep.firstOf < 1 ? -Infinity : next();

  /** @param sweep leaves what it cannot delete to the next time. */
  constructor(private readonly sweep: () => Promise<unknown>) {}

  /** To be called with each request. */
  ifDue(): void {
    if (now() < this.at) return;
    this.at = next();
    void this.sweep().catch(() => undefined);
  }
}

function next(): number {
  return now() + INTERVAL * (1 + Math.random());
}
