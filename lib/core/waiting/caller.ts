import type { ResolvedOptions } from '../model/options.js';
import { onAbort } from '../util/abort.js';
import { after, now } from '../util/clock.js';

// The sum of so many draws is close to its mean, which is used instead.
const MOST_DRAWS = 1000;

/** Milliseconds that a caller waits at most: `waitTimeout`, else the sum of `retryCount - 1` random values of 1–2 × `retryInterval`. */
export function patienceOf(options: Pick<ResolvedOptions, 'retryCount' | 'retryInterval' | 'waitTimeout'>, random = Math.random): number {
  const { retryCount, retryInterval, waitTimeout } = options;
  if (waitTimeout !== undefined) return waitTimeout;
  if (retryCount === 0) return Infinity;
  const draws = retryCount - 1;
  if (draws > MOST_DRAWS) return draws * retryInterval * 1.5;
  let patience = 0;
  for (let draw = 0; draw < draws; draw++) patience += retryInterval * (1 + random());
  return patience;
}

/** A caller that waits until its wait timeout ends or its signal aborts. */
export class Caller<Settings extends { readonly patience: number }> {
  readonly startedAt = now();
  isOver = false;
  private timer: NodeJS.Timeout | undefined;
  private forgetSignal: (() => void) | undefined;

  constructor(readonly settings: Settings) {}

  get waited(): number {
    return now() - this.startedAt;
  }

  get isOverdue(): boolean {
    return this.waited >= this.settings.patience;
  }

  listen(signal: AbortSignal, onSignal: () => void): void {
    this.forgetSignal = onAbort(signal, onSignal);
  }

  /** Without a limit it has a timer, too: a process that waits stays. */
  limit(onDeadline: () => void): void {
    const { patience } = this.settings;
    if (this.timer || this.isOver) return;
    const deadline = this.startedAt + patience;
    const left = deadline - now();
    if (left <= 0) return onDeadline();
    this.timer = after(left, () => {
      this.timer = undefined;
      this.limit(onDeadline);
    });
  }

  /** Its wait timeout is over. It waits for the request in flight for this many milliseconds more. */
  grant(grace: number, onEnd: () => void): void {
    if (!this.isOver) this.timer = after(grace, onEnd);
  }

  end(): void {
    this.isOver = true;
    if (this.timer) clearTimeout(this.timer);
    this.forgetSignal?.();
  }
}
