import { after, now } from '../../core/util/clock.js';

/** Milliseconds after which one of those that wait asks without a sign of life. */
const PAUSE = 1_000;
/** Of those that wait, so that an outage does not fill the memory: what the earlier ones would ask for ends with its lease. */
const MOST = 1_000;

interface Waiting {
  /** On the monotonic clock. */
  readonly end: number;
  readonly resolve: (isWorthIt: boolean) => void;
}

/** What waits for a member that does not answer: all of it goes on with its next answer, and until then one in each second tries. */
export class NextAnswer {
  private waiting: Waiting[] = [];
  private timer: NodeJS.Timeout | undefined;

  /** Whether it is worth it to ask now: `end` has not come. */
  wait(end: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.waiting.push({ end, resolve });
      if (this.waiting.length > MOST) this.waiting.shift()?.resolve(false);
      this.timer ??= after(PAUSE, this.tryOne).unref();
    });
  }

  /** The member has answered; or nobody is to ask it any more. */
  all(isWorthIt: boolean): void {
    if (this.waiting.length === 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const { resolve } of this.waiting.splice(0)) resolve(isWorthIt);
  }

  private readonly tryOne = (): void => {
    const time = now();
    this.waiting = this.waiting.filter(({ end, resolve }) => {
      if (end <= time) resolve(false);
      return end > time;
    });
    this.waiting.shift()?.resolve(true);
    this.timer = this.waiting.length > 0 ? after(PAUSE, this.tryOne).unref() : undefined;
  };
}
