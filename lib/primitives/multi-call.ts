import { onAbort, untilAborted } from '../core/util/abort.js';
import { after, now } from '../core/util/clock.js';
import { LockAbortedError, unanswered } from '../core/model/errors.js';
import type { Lease } from '../core/model/lease.js';
import type { ResolvedOptions } from '../core/model/options.js';

/**
 * One caller's try to have several locks. All that it asks for ends by its patience and one `requestTimeout`, however many requests that takes, and
 * at once when the caller's signal aborts.
 */
export class MultiCall {
  /** The caller's, with a signal that ends all that is under way. */
  readonly options: ResolvedOptions;
  private readonly over = new AbortController();
  private isLate = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly forgetSignal: (() => void) | undefined;

  constructor(
    private readonly key: string,
    options: ResolvedOptions,
    readonly guardsBody: boolean,
    /** On the monotonic clock. */
    readonly deadline: number,
    requestTimeout: number,
  ) {
    const { signal } = options;
    this.options = { ...options, signal: this.over.signal };
    if (signal?.aborted) this.over.abort(signal.reason);
    else this.forgetSignal = signal && onAbort(signal, () => this.over.abort(signal.reason));
    if (deadline < Infinity) this.endAt(deadline + requestTimeout);
  }

  /** Waits until they are given back, or until nobody waits any more: another try of anybody would find them taken. */
  async giveBack(leases: Iterable<Lease>): Promise<void> {
    const released = Promise.all([...leases].map((lease) => lease.release()));
    const { signal } = this.over;
    if (!signal.aborted) await untilAborted(released, signal);
  }

  /** Why there is no lease. */
  reasonOf(error: unknown): unknown {
    return this.isLate && error instanceof LockAbortedError && error.reason === 'signal' ? unanswered(this.key) : error;
  }

  end(): void {
    clearTimeout(this.timer);
    this.forgetSignal?.();
  }

  private endAt(time: number): void {
    this.timer = after(time - now(), () => {
      if (now() < time) return this.endAt(time);
      this.isLate = true;
      this.over.abort();
    });
  }
}
