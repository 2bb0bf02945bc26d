import { Contender, type Contest, type Grant, type Taken, type Wish } from './acquire.js';
import { after, now, validity } from './clock.js';
import type { LeaseDriver } from './driver.js';
import { abortedBy, closed, LockError, LockTimeoutError, ownCopyOf, StoreError, stopped } from './errors.js';
import { Lease } from './lease.js';
import type { LockRuntime } from './runtime.js';
import { Tenure } from './tenure.js';
import { Waiter, Waiters, type AcquireSettings, type LocalQueueLimits } from './waiter.js';

/**
 * Those of this process who want one key. Only one of them at a time has business with the store: it contends for all, and what it gets
 * passes from one to the next without a request, within the limits.
 */
export class LocalQueue implements Contest {
  private readonly waiting = new Waiters();
  private contender: Contender | undefined;
  private holder: Tenure | undefined;
  private outcome: Taken | LockError | undefined;
  /** Hand-overs that the holder's tokens allow yet. */
  private turnsLeft = 0;
  private turnsEnd = 0;
  private looker: NodeJS.Timeout | undefined;
  private lookedAt = 0;

  constructor(
    readonly runtime: LockRuntime,
    readonly driver: LeaseDriver,
    readonly key: string,
    private readonly limits: LocalQueueLimits,
    private readonly onIdle: () => void,
  ) {}

  join(settings: AcquireSettings): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(settings, resolve, reject);
      this.runtime.acquireBegins();
      this.waiting.add(waiter);
      const { signal } = settings;
      if (signal) waiter.listen(signal, () => this.abandon(waiter, abortedBy(signal, this.key)));
      if (!this.holder && !this.contender) return this.contend();
      this.wait(waiter);
      this.lookLater();
    });
  }

  /** The locks are being closed: nobody may wait any more, though what is under way may yet succeed. */
  stop(): void {
    if (this.contender && !this.contender.isWaiting) return;
    for (const waiter of this.waiting) this.remove(waiter, stopped(this.key));
  }

  /** The locks are closed: what is under way is called off. */
  close(): void {
    for (const waiter of this.waiting) this.remove(waiter, closed(this.key));
  }

  wish(): Wish {
    const { settings, holding } = this.waiting.first as Waiter;
    const { ttl, minHold, retryInterval, patience, fair, share } = settings;
    const tokens = this.waiting.size > 1 ? this.limits.handOvers : 1;
    return { ttl, minHold, retryInterval, isPatient: patience > 0, fair, tokens, holding, share };
  }

  isWanted({ ttl, minHold }: Wish): boolean {
    const { settings } = this.waiting.first as Waiter;
    return settings.ttl === ttl && settings.minHold === minHold;
  }

  granted({ owner, wish, token, sentAt }: Grant): void {
    const { attempts } = this.contender as Contender;
    this.contender = undefined;
    this.outcome = undefined;
    this.turnsLeft = wish.tokens - 1;
    this.turnsEnd = now() + this.limits.time;
    const { key, driver, runtime } = this;
    const { ttl, minHold, share } = wish;
    const tenure = new Tenure(runtime, this, { key, owner, driver, ttl, minHold, fencingToken: token, share, sentAt });
    this.give(this.waiting.first as Waiter, tenure, attempts);
    for (const waiter of this.waiting) if (waiter.isLate) this.remove(waiter, this.reasonAtTheEnd(waiter));
    if (runtime.stopping.aborted) this.stop();
  }

  refused(outcome: Taken | LockError): void {
    this.outcome = outcome;
    const isStopping = this.runtime.stopping.aborted;
    for (const waiter of this.waiting) {
      if (waiter.isOverdue) this.remove(waiter, this.reasonAtTheEnd(waiter));
      else if (isStopping) this.remove(waiter, stopped(this.key));
      else this.wait(waiter);
    }
  }

  failed(error: LockError): void {
    this.contender = undefined;
    for (const waiter of this.waiting) this.remove(waiter, ownCopyOf(error));
  }

  /**
   * The holder's last lease is released. The key passes to the next one here, without the store or by one request that offers it to others
   * first; `false`: nobody here waits, or it must go back to the store by itself.
   */
  passOn(tenure: Tenure): boolean {
    if (this.holder !== tenure || this.waiting.size === 0 || tenure.isKept) return false;
    // Those who listen may call off the next one's wait.
    tenure.tellReleased();
    const next = this.waiting.first;
    if (!next) return false;
    this.outcome = undefined;
    if (this.mayPassTo(next, tenure)) {
      this.turnsLeft--;
      this.give(next, tenure.next(), 0);
    } else {
      this.holder = undefined;
      this.contend(tenure);
    }
    return true;
  }

  /** The tenure is over at the store, or soon will be: the next one here asks for one of its own. */
  left(tenure: Tenure): void {
    if (this.holder !== tenure) return;
    this.holder = undefined;
    if (this.waiting.size > 0) this.contend();
    else this.onIdle();
  }

  private contend(yields?: Tenure): void {
    this.contender = new Contender(this, yields);
    this.contender.ask();
  }

  private mayPassTo({ settings }: Waiter, tenure: Tenure): boolean {
    if (this.turnsLeft <= 0 || now() >= this.turnsEnd) return false;
    // A minHold outlives the process only if the store knows of it.
    return (
      settings.ttl === tenure.ttl && settings.minHold === 0 && tenure.isRenewed && tenure.validUntil - now() >= validity(tenure.ttl) / 2
    );
  }

  private give(waiter: Waiter, tenure: Tenure, attempts: number): void {
    const { key, owner, fencingToken } = tenure;
    this.holder = tenure;
    this.waiting.delete(waiter);
    waiter.end();
    if (this.waiting.size > 0) this.lookLater();
    else this.stopLooking();
    const { guardsBody, maxHold } = waiter.settings;
    const lease = new Lease(tenure, guardsBody, maxHold, true);
    const { events } = this.runtime;
    if (events.isHeard('acquired')) events.emit('acquired', { key, owner, fencingToken, waited: waiter.waited, attempts });
    this.runtime.acquireEnds();
    waiter.resolve(lease);
  }

  /** From the first time that the key was found taken. */
  private wait(waiter: Waiter): void {
    if (waiter.isWaiting || waiter.isOver) return;
    waiter.isWaiting = true;
    waiter.limit(() => this.deadline(waiter));
    if (waiter.settings.patience > 0) this.runtime.events.emit('waiting', { key: this.key });
  }

  /** The first one has one last look, since the last one may be long ago. */
  private deadline(waiter: Waiter): void {
    const { first } = this.waiting;
    if (waiter !== first && (this.holder || this.outcome)) return this.remove(waiter, this.reasonAtTheEnd(waiter));
    waiter.isLate = true;
    if (this.holder) void this.look().then(() => this.holder && this.remove(waiter, this.reasonAtTheEnd(waiter)));
    else if (waiter === first && waiter.settings.patience > 0) this.contender?.ask();
  }

  /** Whoever waits behind a holder of this process looks now and then too whether the store still knows it. */
  private lookLater(): void {
    const { first } = this.waiting;
    if (!this.holder || !first || this.looker) return;
    const pause = 2 * first.settings.retryInterval;
    this.looker = after(this.lastSign + pause - now(), () => {
      this.looker = undefined;
      const isDue = now() >= this.lastSign + pause;
      void (isDue ? this.look() : Promise.resolve()).then(() => this.lookLater());
    });
  }

  /** When the store was last known to know the holder. */
  private get lastSign(): number {
    return Math.max(this.lookedAt, this.holder?.grantedAt ?? 0);
  }

  private async look(): Promise<void> {
    const { holder } = this;
    this.lookedAt = now();
    try {
      await holder?.renew();
      if (this.holder === holder) this.outcome = undefined;
    } catch (error) {
      // A loss has been told to us by the holder.
      if (this.holder === holder && error instanceof StoreError) this.outcome = error;
    }
  }

  /** The next one has waited by the retryInterval of the first, and goes on by its own. */
  private abandon(waiter: Waiter, error: LockError): void {
    const { first } = this.waiting;
    this.remove(waiter, error);
    if (waiter !== first) return;
    this.stopLooking();
    this.lookLater();
    if (this.contender?.isWaiting) this.contender.ask();
  }

  private remove(waiter: Waiter, error: LockError): void {
    if (!this.waiting.delete(waiter)) return;
    waiter.end();
    const attempts = this.contender?.attempts ?? 0;
    if (this.waiting.size === 0 && this.contender) {
      this.contender.cancel();
      this.contender = undefined;
    }
    if (error instanceof LockTimeoutError) {
      this.runtime.events.emit('timeout', { key: this.key, waited: waiter.waited, attempts });
    }
    if (this.waiting.size === 0) this.stopLooking();
    if (!this.holder && !this.contender) this.onIdle();
    this.runtime.acquireEnds();
    waiter.reject(error);
  }

  private stopLooking(): void {
    clearTimeout(this.looker);
    this.looker = undefined;
  }

  private reasonAtTheEnd(waiter: Waiter): LockError {
    const { key, outcome } = this;
    // A look that failed says nothing once the holder has been renewed after it.
    const isOutage = outcome instanceof LockError && !(this.holder && this.holder.sentAt > this.lookedAt);
    if (isOutage) return ownCopyOf(outcome);
    const holder = this.holder?.owner ?? (outcome as Taken).holder;
    return new LockTimeoutError(`Could not acquire "${key}" within ${Math.round(waiter.waited)} ms: it is held by ${holder}.`, {
      key,
      holder,
    });
  }
}
