import { after, now } from '../util/clock.js';
import { type LockError, LockLostError } from '../model/errors.js';
import type { Tenure } from './tenure.js';

/** Each look is a request, and a release within the process needs none to be found. */
const SHORTEST_PAUSE = 100;

/** Those who wait behind a holder of their own process. */
export interface Watchers {
  readonly holder: Tenure | undefined;
  /** Milliseconds between two looks; `undefined`: nobody waits. */
  readonly lookInterval: number | undefined;
  /** The store gave no answer for the holder; `undefined`: it knows it. A loss is told by the holder itself. */
  looked(outage: LockError | undefined): void;
}

/** Looks now and then, whoever waits behind a holder of this process, whether the store still knows it. */
export class Lookout {
  private timer: NodeJS.Timeout | undefined;
  private looksAt = 0;
  private lookedAt = 0;
  private isLooking = false;

  constructor(private readonly watchers: Watchers) {}

  /** Looks when the time has come, again and again while anybody waits. Who waits first now may want it sooner than the one before. */
  begin(): void {
    const { holder, lookInterval } = this.watchers;
    if (!holder || lookInterval === undefined) return;
    const pause = Math.max(lookInterval, SHORTEST_PAUSE);
    const looksAt = this.lastSign + pause;
    if (this.timer && this.looksAt <= looksAt) return;
    clearTimeout(this.timer);
    this.looksAt = looksAt;
    this.timer = after(looksAt - now(), () => {
      this.timer = undefined;
      const isDue = now() >= this.lastSign + pause;
      void (isDue ? this.look() : Promise.resolve()).then(() => this.begin());
    });
  }

  end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  async look(): Promise<void> {
    const { holder } = this.watchers;
    this.lookedAt = now();
    this.isLooking = true;
    let outage: LockError | undefined;
    try {
      await holder?.renew();
    } catch (error) {
      if (error instanceof LockLostError) return;
      outage = error as LockError;
    } finally {
      this.isLooking = false;
    }
    if (this.watchers.holder === holder) this.watchers.looked(outage);
  }

  /** Milliseconds since the look that has no answer yet. */
  get silence(): number {
    return this.isLooking ? now() - this.lookedAt : 0;
  }

  /** A look that failed says nothing once the holder has been renewed after it. */
  isOutdatedFor(holder: Tenure): boolean {
    return holder.sentAt > this.lookedAt;
  }

  /** When the store was last known to know the holder. */
  private get lastSign(): number {
    return Math.max(this.lookedAt, this.watchers.holder?.grantedAt ?? 0);
  }
}
