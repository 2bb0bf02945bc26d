import { after, now } from '../util/clock.js';
import { LinkedList, type LinkedEntry } from '../util/linked-list.js';

export interface TimedRequest<T extends LinkedEntry<T>> extends LinkedEntry<T> {
  /** On the monotonic clock; set by {@link RequestDeadlines.begin}. */
  endsAt: number;
}

/**
 * The requests of a store that have no answer yet, and an end for each of them. One timer serves all: a timer of its own would cost a request
 * as much as the rest of it (`npm run bench -- w1`). It keeps the process alive while a request is open: somebody waits for it.
 */
export class RequestDeadlines<T extends TimedRequest<T>> {
  /** In the order of their ends, because all have the same limit. */
  readonly open = new LinkedList<T>();
  private timer: NodeJS.Timeout | undefined;

  /** @param late is called for each request that did not {@link end} in time, and ends it. */
  constructor(
    readonly requestTimeout: number,
    private readonly late: (request: T) => void,
  ) {}

  begin(request: T): void {
    request.endsAt = now() + this.requestTimeout;
    this.open.add(request);
    this.timer = (this.timer ?? after(this.requestTimeout, this.onTimer)).ref();
  }

  /** False: it had ended already. */
  end(request: T): boolean {
    const wasOpen = this.open.delete(request);
    if (this.open.size === 0) this.timer?.unref();
    return wasOpen;
  }

  private readonly onTimer = (): void => {
    this.timer = undefined;
    // After a blocked event loop the replies may have arrived already: they are read before this runs.
    setImmediate(() => {
      for (const request of this.open) {
        const left = request.endsAt - now();
        if (left > 0) {
          // A late request may have begun another one, whose end is later than this.
          clearTimeout(this.timer);
          return void (this.timer = after(left, this.onTimer));
        }
        this.late(request);
      }
    });
  };
}
