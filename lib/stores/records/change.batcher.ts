import { awake as now, isSettledWithin } from '../../core/util/clock.js';
import type { RecordClock } from './record.clock.js';
import type { Change, Found, RecordTable } from './record.table.js';
import { foundOf } from './record.texts.js';

const MOST_AT_ONCE = 256;

interface Outgoing {
  readonly change: Change;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends the changes of one iteration of the event loop together, and learns the table's clock from the replies. While the table does as many exchanges
 * as it can at a time, changes wait here for the next one: each for itself would wait for a connection, and be outdated when it has one.
 */
export class ChangeBatcher {
  private outgoing: Outgoing[] = [];
  private underWay = 0;

  constructor(
    private readonly table: RecordTable,
    private readonly clock: RecordClock,
  ) {}

  /** The returned function withdraws the change, if it has not been sent yet. */
  send(change: Change, resolve: (found: Found) => void, reject: (error: unknown) => void): () => void {
    const outgoing = { change, resolve, reject };
    if (this.outgoing.push(outgoing) === 1) setImmediate(() => this.flush());
    return () => void (this.outgoing = this.outgoing.filter((other) => other !== outgoing));
  }

  private flush(): void {
    const { atOnce = Infinity } = this.table;
    while (this.outgoing.length > 0 && this.underWay < atOnce) {
      const some = this.outgoing.splice(0, MOST_AT_ONCE);
      const sentAt = now();
      try {
        const replies = this.table.exchange(some.map(({ change }) => change));
        for (const [index, { resolve, reject }] of some.entries()) {
          (replies[index] as Promise<Found>).then(foundOf).then(
            (found) => {
              if (found.time !== undefined) this.clock.learn(found.time, sentAt);
              resolve(found);
            },
            (error: unknown) => {
              this.clock.forget();
              reject(error);
            },
          );
        }
        if (atOnce < Infinity) this.await(replies);
      } catch (error) {
        // A table should reject, not throw.
        for (const { reject } of some) reject(error);
      }
    }
  }

  private await(replies: readonly Promise<unknown>[]): void {
    this.underWay++;
    // An exchange without an answer must not hold up the others for longer than that.
    void isSettledWithin(this.table.requestTimeout, Promise.allSettled(replies)).then(() => {
      this.underWay--;
      // After the replies, so that changes that follow from them are included.
      setImmediate(() => this.flush());
    });
  }
}
