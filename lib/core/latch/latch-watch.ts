import type { Lifecycle } from '../holding/lifecycle.js';
import { abortedBy, asStoreError, closed, LockLostError, LockTimeoutError, ownCopyOf, stopped, unanswered } from '../model/errors.js';
import type { LockError } from '../model/errors.js';
import type { LatchDriver, LatchState } from '../store/latch-driver.js';
import type { WakeUps } from '../store/lease-driver.js';
import { now } from '../util/clock.js';
import { RepeatedRequest } from '../util/repeated-request.js';
import { pollDelay, queuedDelay } from '../waiting/backoff.js';
import { Caller } from '../waiting/caller.js';
import type { CallSettings } from './latch-request.js';

/** Milliseconds for which a place is given up again and again. One that is left over expires with its latch. */
const LEAVING = 60_000;

/** One caller who waits for a latch. */
class LatchWaiter extends Caller<CallSettings> {
  /** The latch as the last look found it; `undefined`: no look has answered this caller yet. */
  found: LatchState | undefined;

  constructor(
    settings: CallSettings,
    readonly resolve: () => void,
    readonly reject: (error: unknown) => void,
  ) {
    super(settings);
  }
}

/**
 * Looks at one latch for all callers of this process that wait for it. There is one look at a time. It answers the callers that were there when
 * it was sent, because the latch may have changed before the others came.
 */
export class LatchWatch extends RepeatedRequest<LatchState | undefined> {
  private readonly owner: string;
  private readonly waiters = new Set<LatchWaiter>();
  /** Those that the look under way answers. */
  private looking: readonly LatchWaiter[] = [];
  /** Whether the store may have noted us as one to wake. */
  private mayBeNoted = false;
  private forgetWakeUps: (() => void) | undefined;

  constructor(
    private readonly runtime: Lifecycle,
    private readonly driver: LatchDriver,
    private readonly key: string,
    private readonly onIdle: () => void,
  ) {
    super();
    this.owner = runtime.createOwner();
  }

  join(settings: CallSettings): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter = new LatchWaiter(settings, resolve, reject);
      const { signal } = settings;
      this.runtime.acquireBegins();
      this.waiters.add(waiter);
      if (signal) waiter.listen(signal, () => this.remove(waiter, abortedBy(signal, this.key)));
      this.attempts = 0;
      this.ask();
      waiter.limit(() => {
        waiter.grant(this.runtime.requestTimeout, () => this.remove(waiter, unanswered(this.key)));
        // The look under way is its last one. If that does not answer this waiter, the next one is due already.
        if (!this.isAsking) this.ask();
      });
    });
  }

  /** The locks are being closed. A caller that no look has answered yet still gets the answer of one. */
  stopWaiting(): void {
    for (const waiter of this.waiters) if (waiter.found || !this.isAsking) this.remove(waiter, stopped(this.key));
  }

  close(): void {
    for (const waiter of this.waiters) this.remove(waiter, closed(this.key));
  }

  protected send(): Promise<LatchState | undefined> {
    const { driver, key, owner, runtime } = this;
    this.looking = [...this.waiters];
    const queue = driver.wakeUps?.isOpen === true && !runtime.stopping.aborted && this.looking.some(({ isOverdue }) => !isOverdue);
    if (queue) {
      this.mayBeNoted = true;
      this.forgetWakeUps ??= driver.wakeUps?.listen(owner, () => this.ask());
    }
    return driver.look({ key, owner, queue });
  }

  protected answered(state: LatchState | undefined): void {
    if (this.isStopped) return;
    const isCounting = state !== undefined && state.count > 0;
    if (!isCounting) this.mayBeNoted = false;
    for (const waiter of this.looking) {
      const before = waiter.found;
      waiter.found = state;
      if (before && before.id !== state?.id) this.remove(waiter, expired(this.key));
      else if (!isCounting || (before && before.round < state.round)) this.remove(waiter);
      else if (waiter.isOverdue) this.remove(waiter, notCountedDown(this.key, waiter, state));
      else if (this.runtime.stopping.aborted) this.remove(waiter, stopped(this.key));
    }
    this.looking = [];
    const { wakeUps } = this.driver;
    const remaining = state?.remaining ?? -1;
    if (this.mayBeNoted && wakeUps?.isOpen) this.askIn(queuedDelay(this.retryInterval, remaining), () => wakeUps.check?.());
    else this.askIn(pollDelay(this.attempts, this.retryInterval, remaining));
    if (isCounting && wakeUps && !this.isStopped) void this.takePlace(wakeUps);
  }

  protected unanswered(cause: unknown): void {
    if (this.isStopped) return;
    const error = asStoreError(cause, this.key);
    for (const waiter of this.looking) {
      if (!error.transient || waiter.isOverdue) this.remove(waiter, ownCopyOf(error));
      else if (this.runtime.stopping.aborted) this.remove(waiter, stopped(this.key, error));
    }
    this.looking = [];
    this.askIn(pollDelay(this.attempts, this.retryInterval, -1));
  }

  /** A latch that the first look does not find counted down is worth a place. */
  private async takePlace(wakeUps: WakeUps): Promise<void> {
    if (!wakeUps.isOpen) await wakeUps.open((message) => this.runtime.events.warn(message, { once: 'polling' }));
    if (wakeUps.isOpen && !this.mayBeNoted) this.ask();
  }

  private get retryInterval(): number {
    let shortest = Infinity;
    for (const { settings } of this.waiters) shortest = Math.min(shortest, settings.retryInterval);
    return shortest;
  }

  private remove(waiter: LatchWaiter, error?: LockError): void {
    if (!this.waiters.delete(waiter)) return;
    waiter.end();
    if (this.waiters.size === 0) this.end();
    this.runtime.acquireEnds();
    if (error) waiter.reject(error);
    else waiter.resolve();
  }

  private end(): void {
    this.stop();
    this.onIdle();
    const { runtime, driver, key, owner, forgetWakeUps } = this;
    if (!this.mayBeNoted) return forgetWakeUps?.();
    const leave = (): Promise<void> => driver.leave({ key, owner });
    void runtime.giveUp('leave', { key, owner }, now() + LEAVING, leave, this.settled).then(forgetWakeUps);
  }
}

function expired(key: string): LockLostError {
  return new LockLostError(`The latch "${key}" expired before it was counted down, or the store has lost it.`, { key });
}

function notCountedDown(key: string, { waited }: LatchWaiter, { count }: LatchState): LockTimeoutError {
  return new LockTimeoutError(`"${key}" was not counted down within ${Math.round(waited)} ms: ${count} left.`, { key });
}
