import { after, now } from '../util/clock.js';
import {
  abortedBy,
  asStoreError,
  closed,
  LockError,
  LockLostError,
  LockTimeoutError,
  ownCopyOf,
  stopped,
  unanswered,
} from '../model/errors.js';
import type { LatchDriver, LatchState } from '../store/latch-driver.js';
import { LatchWaiter } from './latch-waiter.js';
import { createOwner } from '../model/owner.js';
import { pollDelay, queuedDelay } from '../waiting/backoff.js';
import { sent, type CallSettings } from './latch-request.js';
import type { Lifecycle } from '../holding/lifecycle.js';

/** Milliseconds for which a place is given up again and again where it is not known when the latch, and the place with it, expires. */
const LEAVING = 60_000;

/**
 * Those of this process who wait for one latch: they look together, and are woken together. Each is answered only by looks that were sent after
 * it came.
 */
export class LatchWatch {
  private readonly owner = createOwner();
  private readonly waiters = new Set<LatchWaiter>();
  /** Numbers of looks: the last one sent, the last one answered, and the last one that may have left us a place. */
  private lastSent = 0;
  private lastAnswered = 0;
  private lastPlaced = 0;
  /** The latch as a look found it that was not counted down. */
  private seen: { readonly state: LatchState; readonly look: number; readonly endsAt: number } | undefined;
  /** Looks in a row that were answered by nothing new. */
  private attempts = 0;
  private isDue = false;
  private isOver = false;
  private timer: NodeJS.Timeout | undefined;
  private forgetWakeUps: (() => void) | undefined;

  constructor(
    private readonly runtime: Lifecycle,
    private readonly driver: LatchDriver,
    private readonly key: string,
    private readonly onIdle: () => void,
  ) {}

  join(settings: CallSettings): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter = new LatchWaiter(settings, this.lastSent + 1, resolve, reject);
      this.runtime.acquireBegins();
      this.waiters.add(waiter);
      this.attempts = 0;
      const { signal } = settings;
      if (signal) waiter.listen(signal, () => this.remove(waiter, abortedBy(signal, this.key)));
      if (this.runtime.stopping.aborted) waiter.lastLook = waiter.firstLook;
      else waiter.limit(() => this.lookLast(waiter));
      this.look();
    });
  }

  /** The locks are being closed: who has looked waits no more, who has not may yet find the latch counted down. */
  stop(): void {
    for (const waiter of [...this.waiters]) {
      if (waiter.firstLook <= this.lastAnswered) this.remove(waiter, stopped(this.key));
      else waiter.lastLook = Math.min(waiter.lastLook, waiter.firstLook);
    }
  }

  close(): void {
    for (const waiter of [...this.waiters]) this.remove(waiter, closed(this.key));
  }

  /** Also while another look is under way: whoever has just come cannot go by that one. Those who come together look together. */
  private look(): void {
    if (this.isDue || this.isOver) return;
    this.isDue = true;
    queueMicrotask(() => this.send());
  }

  private lookLast(waiter: LatchWaiter): void {
    waiter.lastLook = Math.min(waiter.lastLook, this.lastSent + 1);
    waiter.grant(this.runtime.requestTimeout, () => this.remove(waiter, unanswered(this.key)));
    this.look();
  }

  private send(): void {
    this.isDue = false;
    if (this.isOver) return;
    clearTimeout(this.timer);
    const { driver, key, owner } = this;
    const look = ++this.lastSent;
    const isPatient = [...this.waiters].some((waiter) => waiter.lastLook > look);
    const queue = isPatient && driver.wakeUps?.isOpen === true;
    if (queue) {
      this.lastPlaced = look;
      this.forgetWakeUps ??= driver.wakeUps?.listen(owner, () => this.look());
    }
    sent(() => driver.look({ key, owner, queue })).then(
      (state) => this.answered(look, state),
      (cause: unknown) => this.unanswered(look, asStoreError(cause, key)),
    );
  }

  private answered(look: number, state: LatchState | undefined): void {
    if (this.isOver || look < this.lastAnswered) return;
    this.lastAnswered = look;
    const { seen } = this;
    const isCounting = state !== undefined && state.count > 0;
    if (!isCounting && this.lastPlaced <= look) this.lastPlaced = 0;
    for (const waiter of [...this.waiters]) {
      if (waiter.firstLook > look) continue;
      const before = seen && waiter.firstLook <= seen.look ? seen.state : undefined;
      if (before && before.id !== state?.id) this.remove(waiter, expired(this.key));
      else if (!isCounting || (before && before.round < state.round)) this.remove(waiter);
      else if (waiter.lastLook <= look) this.remove(waiter, this.reasonAtTheEnd(waiter, state));
    }
    this.seen = isCounting ? { state, look, endsAt: now() + state.remaining } : undefined;
    this.attempts++;
    this.lookLater(look, state?.remaining ?? -1);
    if (isCounting) this.openWakeUps();
  }

  private unanswered(look: number, error: LockError): void {
    if (this.isOver) return;
    const isFinal = !error.transient;
    for (const waiter of [...this.waiters]) {
      if (waiter.firstLook > look) continue;
      if (isFinal) this.remove(waiter, ownCopyOf(error));
      else if (waiter.lastLook <= look) this.remove(waiter, this.reasonAtTheEnd(waiter, error));
      else if (this.runtime.stopping.aborted) this.remove(waiter, stopped(this.key));
    }
    this.attempts++;
    this.lookLater(look, -1);
  }

  private openWakeUps(): void {
    const { wakeUps } = this.driver;
    if (!wakeUps || this.isOver) return;
    // What was not counted down at once is worth a place.
    if (wakeUps.isOpen && this.lastPlaced === 0) return this.look();
    if (wakeUps.isOpen) return;
    void wakeUps
      .open((message) => this.runtime.events.warn(message))
      .then(() => {
        if (wakeUps.isOpen && this.lastPlaced === 0) this.look();
      });
  }

  /** Another look under way, if there is one, sets the timer when it is answered. */
  private lookLater(look: number, remaining: number): void {
    if (this.isOver || this.isDue || look < this.lastSent) return;
    const { wakeUps } = this.driver;
    let retryInterval = Infinity;
    for (const { settings } of this.waiters) retryInterval = Math.min(retryInterval, settings.retryInterval);
    const isWoken = this.lastPlaced > 0 && wakeUps?.isOpen === true && this.lastAnswered === look;
    const delay = isWoken ? queuedDelay(retryInterval, remaining) : pollDelay(this.attempts, retryInterval, remaining);
    this.timer = after(delay, () => {
      if (isWoken) wakeUps?.check?.();
      this.look();
    });
  }

  private remove(waiter: LatchWaiter, error?: LockError): void {
    if (!this.waiters.delete(waiter)) return;
    waiter.end();
    if (this.waiters.size === 0) this.end();
    this.runtime.acquireEnds();
    if (error) waiter.reject(error);
    else waiter.resolve();
  }

  private reasonAtTheEnd(waiter: LatchWaiter, outcome: LatchState | LockError): LockError {
    const { key } = this;
    if (!waiter.isOverdue) return stopped(key);
    if (outcome instanceof LockError) return ownCopyOf(outcome);
    const waited = Math.round(waiter.waited);
    return new LockTimeoutError(`"${key}" was not counted down within ${waited} ms: ${outcome.count} left.`, { key });
  }

  private end(): void {
    this.isOver = true;
    clearTimeout(this.timer);
    const { forgetWakeUps = noop } = this;
    if (this.lastPlaced > 0) void this.leave().finally(forgetWakeUps);
    else forgetWakeUps();
    this.onIdle();
  }

  private leave(): Promise<void> {
    const { runtime, driver, key, owner } = this;
    const end = this.seen?.endsAt ?? now() + LEAVING;
    return runtime.giveUp('leave', { key, owner }, end, () => sent(() => driver.leave({ key, owner })));
  }
}

function expired(key: string): LockLostError {
  return new LockLostError(`The latch "${key}" expired before it was counted down, or the store has lost it.`, { key });
}

function noop(): void {
  // It never listened.
}
