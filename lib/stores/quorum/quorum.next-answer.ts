import { after, now } from '../../core/util/clock.js';

/** Milliseconds after which the owner that has waited longest tries, though no answer has come; and between two tries of one that was refused. */
const PAUSE = 1_000;
/** Most owners that wait, so that an outage does not fill the memory: the requests of earlier ones end with their leases. */
const MOST = 1_000;

interface Waiting {
  /** On the monotonic clock. */
  readonly end: number;
  readonly notBefore: number;
  readonly resolve: (isTry: boolean) => void;
}

/** Owners that wait for a member which does not answer. Each answer lets one of them try; so the answer to that one lets the next. */
export class NextAnswer {
  /** The waits by owner, the longest one first. */
  private readonly waiting = new Map<string, Waiting>();
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  /** Resolves when the owner is to try; false: not any more. @param isRefused whether it has tried, and the member does not answer it as it does others. */
  wait(owner: string, end: number, isRefused = false): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.isClosed || end <= now()) return resolve(false);
      this.waiting.set(owner, { end, notBefore: isRefused ? now() + PAUSE : 0, resolve });
      if (this.waiting.size > MOST) this.first(false);
      this.timer ??= after(PAUSE, this.tick).unref();
    });
  }

  /** The member has answered. */
  came(): void {
    if (this.waiting.size > 0) this.first(true);
  }

  cancel(owner: string): void {
    if (this.waiting.size > 0) this.settle(owner, false);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const owner of [...this.waiting.keys()]) this.settle(owner, false);
  }

  private first(isTry: boolean): void {
    for (const [owner, { notBefore }] of this.waiting) if (!isTry || notBefore <= now()) return this.settle(owner, isTry);
  }

  private settle(owner: string, isTry: boolean): void {
    const waiting = this.waiting.get(owner);
    this.waiting.delete(owner);
    waiting?.resolve(isTry);
  }

  private readonly tick = (): void => {
    const time = now();
    for (const [owner, { end }] of [...this.waiting]) if (end <= time) this.settle(owner, false);
    this.came();
    this.timer = this.waiting.size > 0 ? after(PAUSE, this.tick).unref() : undefined;
  };
}
