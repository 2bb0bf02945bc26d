import { onAbort, untilAborted } from './abort.js';
import { after, now, validity } from './clock.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from './driver.js';
import {
  abortedBy,
  asStoreError,
  isTransient,
  LockAbortedError,
  LockConfigError,
  LockError,
  LockTimeoutError,
  StoreError,
} from './errors.js';
import { createOwner } from './owner.js';
import { pollDelay, turnDelay } from './patience.js';
import { repeatUntilAnswered } from './repeat.js';
import type { LockRuntime } from './runtime.js';
import { Lease } from './lease.js';
import { Tenure } from './tenure.js';

export interface AcquireSettings {
  readonly runtime: LockRuntime;
  readonly driver: LeaseDriver;
  readonly key: string;
  /** Lease length, milliseconds. */
  readonly ttl: number;
  readonly minHold: number;
  /** Milliseconds to wait; 0: one try. */
  readonly patience: number;
  readonly retryInterval: number;
  readonly fair: boolean;
  readonly signal: AbortSignal | undefined;
  readonly maxHold: number | undefined;
  /** Whether a body runs under the lease. */
  readonly guardsBody: boolean;
}

/**
 * Takes the key for a new owner, asking the store again until it is granted, patience ends or the wait is called off. The only acquire loop:
 * every kind of lock goes through it.
 *
 * Its rejection tells contention ({@link LockTimeoutError}) from an outage ({@link StoreError}) by the last try, and is due within patience
 * plus one request.
 */
export function acquire(settings: AcquireSettings): Promise<Lease> {
  return new Acquisition(settings).run();
}

type Taken = Extract<AcquireReply, { granted: false }>;

class Acquisition {
  private readonly startedAt = now();
  private readonly request: AcquireRequest;
  private attempts = 0;
  private sentAt = 0;
  private isAbandoned = false;
  /** Whether the store may know this owner, as a holder or a waiter. */
  private mayBeKnown = false;

  constructor(private readonly settings: AcquireSettings) {
    const { key, ttl, minHold, fair } = settings;
    this.request = {
      key,
      owner: createOwner(),
      ttl: Math.max(ttl, minHold),
      tokens: 1,
      queue: fair && settings.patience > 0,
      abandoned: () => this.isAbandoned,
    };
  }

  async run(): Promise<Lease> {
    const { runtime, patience } = this.settings;
    const deadline = this.startedAt + patience;
    runtime.acquireBegins();
    try {
      for (;;) {
        this.assertNotAborted();
        const outcome = await this.ask();
        if (outcome instanceof Lease) return outcome;
        const left = deadline - now();
        if (left <= 0) throw outcome instanceof LockError ? outcome : this.timeout(outcome);
        await this.pause(Math.min(left, this.delayAfter(outcome)));
      }
    } catch (error) {
      this.isAbandoned = true;
      if (this.mayBeKnown) this.leave();
      throw error;
    } finally {
      runtime.acquireEnds();
    }
  }

  /** One request. An answer that does not come, or too late, is an outcome too, where another try may help. */
  private async ask(): Promise<Lease | Taken | LockError> {
    const { driver, signal, key } = this.settings;
    const wasKnown = this.mayBeKnown;
    this.attempts++;
    this.sentAt = now();
    this.mayBeKnown = true;
    try {
      const reply = await untilAborted(driver.acquire(this.request), signal);
      if (!reply) throw abortedBy(signal as AbortSignal, key);
      this.mayBeKnown = reply.granted || this.request.queue;
      if (!reply.granted) return reply;
      this.assertNotAborted();
      return this.begin(reply.token);
    } catch (cause) {
      const error = asStoreError(cause, key);
      if (error instanceof LockConfigError || (error instanceof StoreError && error.isUnsent)) this.mayBeKnown = wasKnown;
      if (isTransient(error)) return error;
      throw error;
    }
  }

  private begin(fencingToken: number | null): Lease | StoreError {
    const { key, driver, ttl, minHold, maxHold, guardsBody, runtime } = this.settings;
    const { sentAt, attempts } = this;
    runtime.assertOpen(key);
    // Asked for again under the same owner, it is refreshed.
    if (now() >= sentAt + validity(ttl)) {
      return new StoreError(`The store granted "${key}" only after the ${ttl} ms of its lease.`, { key, transient: true });
    }
    const { owner } = this.request;
    const tenure = new Tenure(runtime, { key, owner, driver, ttl, minHold, fencingToken, sentAt });
    const lease = new Lease(tenure, guardsBody, maxHold, true);
    runtime.events.emit('acquired', { key, owner, fencingToken, waited: now() - this.startedAt, attempts });
    return lease;
  }

  private delayAfter(outcome: Taken | LockError): number {
    const { retryInterval } = this.settings;
    if (outcome instanceof LockError) return pollDelay(this.attempts, retryInterval, -1);
    return this.request.queue ? turnDelay(outcome.ahead, this.attempts) : pollDelay(this.attempts, retryInterval, outcome.remaining);
  }

  private timeout(reply: Taken): LockTimeoutError {
    const { key, runtime } = this.settings;
    const waited = now() - this.startedAt;
    runtime.events.emit('timeout', { key, waited, attempts: this.attempts });
    return new LockTimeoutError(`Could not acquire "${key}" within ${Math.round(waited)} ms: it is held by ${reply.holder}.`, { key });
  }

  private assertNotAborted(): void {
    const { signal, key } = this.settings;
    if (signal?.aborted) throw abortedBy(signal, key);
  }

  /** Waits, but no longer than until the wait is called off. */
  private async pause(delay: number): Promise<void> {
    const { signal, runtime, key } = this.settings;
    const stopped = (): LockAbortedError =>
      new LockAbortedError(`Cannot wait for "${key}": the locks are being closed.`, { key, reason: 'shutdown' });
    if (runtime.stopping.aborted) throw stopped();
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        forgetSignal?.();
        forgetStop();
        resolve();
      };
      const timer = after(delay, end);
      const forgetSignal = signal && onAbort(signal, end);
      const forgetStop = onAbort(runtime.stopping, end);
    });
    if (runtime.stopping.aborted) throw stopped();
  }

  /** The first `leave` goes out now, right behind the acquire that it abandons. */
  private leave(): void {
    const { driver, runtime } = this.settings;
    const { key, owner, ttl } = this.request;
    const leaving = repeatUntilAnswered(
      () => driver.leave({ key, owner }),
      this.sentAt + ttl,
      (cause) => {
        const error = asStoreError(cause, key);
        runtime.events.emit('unknown', { key, owner, operation: 'leave', error });
        return error;
      },
    );
    runtime.inBackground(leaving);
  }
}
