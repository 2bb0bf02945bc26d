import { now } from '../../core/util/clock.js';
import type { RecordClock } from './record.clock.js';
import type { Change, Found, RecordTable } from './record.table.js';

const MOST_AT_ONCE = 256;

export interface Answer {
  readonly found: Found;
  /** Whether the times that were written are right. */
  readonly isInTime: boolean;
}

interface Outgoing {
  readonly change: Change;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends the changes of one turn of the event loop together, and learns the table's clock from the replies. */
export class RecordPost {
  private outgoing: Outgoing[] = [];

  constructor(
    private readonly table: RecordTable,
    private readonly clock: RecordClock,
  ) {}

  send(change: Change, resolve: (answer: Answer) => void, reject: (error: unknown) => void): void {
    if (this.outgoing.push({ change, resolve, reject }) === 1) setImmediate(() => this.flush());
  }

  private flush(): void {
    const all = this.outgoing;
    this.outgoing = [];
    for (let start = 0; start < all.length; start += MOST_AT_ONCE) {
      const some = all.slice(start, start + MOST_AT_ONCE);
      const sentAt = now();
      try {
        const replies = this.table.exchange(some.map(({ change }) => change));
        for (const [index, { resolve, reject }] of some.entries()) {
          (replies[index] as Promise<Found>).then(
            (found) => resolve({ found, isInTime: found.time === undefined || this.clock.hear(found.time, sentAt) }),
            (error: unknown) => {
              this.clock.forget();
              reject(error);
            },
          );
        }
      } catch (error) {
        // A table should reject, not throw.
        for (const { reject } of some) reject(error);
      }
    }
  }
}
