import type { Lifecycle } from '../core/holding/lifecycle.js';
import { abortedBy, closed, LockLostError, LockTimeoutError, ownCopyOf, StoreError, stopped, unanswered } from '../core/model/errors.js';
import type { LockError } from '../core/model/errors.js';
import type { LatchDriver, LatchState } from '../core/store/latch-driver.js';
import type { WakeUps } from '../core/store/lease-driver.js';
import { now } from '../core/util/clock.js';
import { repeat } from '../core/util/repeated-request.js';
import { pollDelay, queuedDelay } from '../core/waiting/backoff.js';
import { Caller } from '../core/waiting/caller.js';
import type { CallSettings } from './latch-driver-calls.js';

/** Milliseconds for which giving up an entry is repeated. An entry that is left over expires with its latch. */
const LEAVING = 60_000;

/** A caller that waits for a latch. */
class LatchWaiter extends Caller<CallSettings> {
  /** The latch as it was read last; `undefined`: this caller has no answer yet. */
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
 * Reads one latch for all callers of this process that wait for it, with one request at a time. A request answers only the callers that were there
 * when it was sent, because the latch may have changed before the others came.
 */
export class LatchWatch {
  private readonly request = repeat<LatchState | undefined>(this);
  private readonly owner: string;
  private readonly waiters = new Set<LatchWaiter>();
  /** The callers that the request in flight answers. */
  private looking: readonly LatchWaiter[] = [];
  /** Whether the store may have an entry of ours. */
  private mayBeNoted = false;
  private wasNotedBefore = false;
  private forgetWakeUps: (() => void) | undefined;

  constructor(
    private readonly runtime: Lifecycle,
    private readonly driver: LatchDriver,
    private readonly key: string,
    private readonly onIdle: () => void,
  ) {
    this.owner = runtime.createOwner();
  }

  join(settings: CallSettings): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter = new LatchWaiter(settings, resolve, reject);
      const { signal } = settings;
      this.runtime.begins('acquire');
      this.waiters.add(waiter);
      if (signal) waiter.listen(signal, () => this.remove(waiter, abortedBy(signal, this.key)));
      this.request.attempts = 0;
      this.request.ask();
      waiter.limit(() => {
        waiter.grant(this.runtime.requestTimeout, () => this.remove(waiter, unanswered(this.key)));
        // The request in flight is its last one. If that does not answer this waiter, the next one is due already.
        if (!this.request.isAsking) this.request.ask();
      });
    });
  }

  /** The locks are being closed. A caller without an answer still gets one. */
  stopWaiting(): void {
    for (const waiter of this.waiters) if (waiter.found || !this.request.isAsking) this.remove(waiter, stopped(this.key));
  }

  close(): void {
    for (const waiter of this.waiters) this.remove(waiter, closed(this.key));
  }

  send(): Promise<LatchState | undefined> {
    const { driver, key, owner, runtime } = this;
    this.looking = [...this.waiters];
    this.wasNotedBefore = this.mayBeNoted;
    const queue = driver.wakeUps?.isOpen === true && !runtime.stopping.aborted && this.looking.some(({ isOverdue }) => !isOverdue);
    if (queue) {
      this.mayBeNoted = true;
      this.forgetWakeUps ??= driver.wakeUps?.listen(owner, () => this.request.ask());
    }
    return driver.look({ key, owner, queue });
  }

  answered(state: LatchState | undefined): void {
    if (this.request.isStopped) return;
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
    if (this.mayBeNoted && wakeUps?.isOpen) this.request.askIn(queuedDelay(this.retryInterval, remaining), () => wakeUps.check?.());
    else this.request.askIn(pollDelay(this.request.attempts, this.retryInterval, remaining));
    if (isCounting && wakeUps && !this.request.isStopped) void this.takeEntry(wakeUps);
  }

  unanswered(cause: unknown): void {
    if (cause instanceof StoreError && cause.isUnsent) this.mayBeNoted = this.wasNotedBefore;
    if (this.request.isStopped) return;
    const error = this.runtime.errorOf(cause, this.key, this.request.sentAt);
    for (const waiter of this.looking) {
      if (!error.transient || waiter.isOverdue) this.remove(waiter, ownCopyOf(error));
      else if (this.runtime.stopping.aborted) this.remove(waiter, stopped(this.key, error));
    }
    this.looking = [];
    this.request.askIn(pollDelay(this.request.attempts, this.retryInterval, -1));
  }

  /** A latch that the first request does not find counted down is worth an entry. */
  private async takeEntry(wakeUps: WakeUps): Promise<void> {
    if (!wakeUps.isOpen) await wakeUps.open(...this.runtime.events.ofInbox);
    if (wakeUps.isOpen && !this.mayBeNoted) this.request.ask();
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
    this.runtime.ends('acquire');
    if (error) waiter.reject(error);
    else waiter.resolve();
  }

  private end(): void {
    this.request.stop();
    this.onIdle();
    if (this.mayBeNoted) this.runtime.inBackground(this.request.settled.then(() => this.leave()));
    else this.forgetWakeUps?.();
  }

  private async leave(): Promise<void> {
    const { runtime, driver, key, owner } = this;
    if (this.mayBeNoted) await runtime.giveUp('leave', { key, owner }, now() + LEAVING, () => driver.leave({ key, owner }));
    this.forgetWakeUps?.();
  }
}

function expired(key: string): LockLostError {
  return new LockLostError(`The latch "${key}" expired before it was counted down, or the store has lost it.`, { key });
}

function notCountedDown(key: string, { waited }: LatchWaiter, { count }: LatchState): LockTimeoutError {
  return new LockTimeoutError(`"${key}" was not counted down within ${Math.round(waited)} ms: ${count} left.`, { key });
}
