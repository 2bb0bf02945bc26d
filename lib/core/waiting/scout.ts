import { after } from '../util/clock.js';
import type { LockQueue } from './lock-queue.js';

/**
 * Other processes can raise the number of permits of a semaphore while callers here wait behind holders of this process. So one contender more than
 * places are known waits at the store, but not for waits that are short.
 */
export class Scout {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly queue: LockQueue) {}

  /** To be called when the callers that wait have changed. */
  look(): void {
    const { queue, timer } = this;
    if (timer || queue.contenders.length > 0 || queue.share?.permits === Infinity) return;
    this.timer = after(2 * queue.first.settings.options.retryInterval, () => {
      this.timer = undefined;
      if (queue.waiting.size > 0 && queue.contenders.length === 0) queue.contend();
    }).unref();
  }

  end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
