import { LockAbortedError, unanswered } from '../core/model/errors.js';
import type { Lease } from '../core/model/lease.js';
import type { ResolvedOptions } from '../core/model/options.js';
import { untilAborted } from '../core/util/abort.js';
import { patienceOf } from '../core/waiting/backoff.js';
import { Caller } from '../core/waiting/caller.js';

/**
 * One caller's attempt to take several locks. All of its requests end when its wait timeout and one `requestTimeout` are over, or at once when its
 * signal aborts.
 */
export class MultiCall extends Caller<{ readonly patience: number }> {
  /** The caller's options, with a signal that ends all requests in flight. */
  readonly options: ResolvedOptions & { readonly signal: AbortSignal };
  private isLate = false;

  constructor(
    options: ResolvedOptions,
    readonly guardsBody: boolean,
    requestTimeout: number,
  ) {
    super({ patience: patienceOf(options) });
    const over = new AbortController();
    const { signal } = options;
    this.options = { ...options, signal: over.signal };
    if (signal?.aborted) over.abort(signal.reason);
    else if (signal) this.listen(signal, () => over.abort(signal.reason));
    this.limit(() => {
      this.grant(requestTimeout, () => {
        this.isLate = true;
        over.abort();
      });
    });
  }

  /** Milliseconds of the wait timeout that are left. */
  get left(): number {
    return Math.max(0, this.settings.patience - this.waited);
  }

  /** Releases the leases, and waits for the replies while the caller may wait: until then another try would find the keys taken. */
  async giveBack(leases: Iterable<Lease>): Promise<void> {
    const released = Promise.all([...leases].map((lease) => lease.release()));
    const { signal } = this.options;
    if (!signal.aborted) await untilAborted(released, signal);
  }

  /** Why there is no lease. */
  reasonOf(error: unknown, key: string): unknown {
    return this.isLate && error instanceof LockAbortedError && error.reason === 'signal' ? unanswered(key) : error;
  }
}
