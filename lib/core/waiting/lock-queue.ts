import { Contender } from './contender.js';
import { now, validity } from '../util/clock.js';
import type { Contest, Grant, Taken, Wish } from './contest.js';
import type { LeaseDriver } from '../store/lease-driver.js';
import { abortedBy, closed, LockError, LockTimeoutError, ownCopyOf, stopped, unanswered } from '../model/errors.js';
import { Lease } from '../holding/lease.js';
import { LinkedEntry, LinkedList } from '../util/linked-list.js';
import { Lookout, type Watchers } from '../holding/lookout.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import { Tenure } from '../holding/tenure.js';
import { Turns, type TurnLimits } from '../holding/turns.js';
import { Waiter, type AcquireSettings } from './waiter.js';

/**
 * Those of this process who want one key. Only one of them at a time has business with the store: it contends for all, and what it gets
 * passes from one to the next without a request, within the limits.
 */
export class LockQueue extends LinkedEntry<LockQueue> implements Contest, Watchers {
  private readonly waiting = new LinkedList<Waiter>();
  private contender: Contender | undefined;
  holder: Tenure | undefined;
  private outcome: Taken | LockError | undefined;
  private turns: Turns | undefined;
  /** Whether any waiter may be. */
  private isAnyLate = false;
  private readonly lookout = new Lookout(this);

  constructor(
    readonly runtime: Lifecycle,
    readonly driver: LeaseDriver,
    readonly key: string,
    private readonly limits: TurnLimits,
    private readonly onIdle: (queue: LockQueue) => void,
  ) {
    super();
  }

  join(settings: AcquireSettings): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(settings, resolve, reject);
      this.runtime.acquireBegins();
      this.waiting.add(waiter);
      const { signal } = settings;
      if (signal) waiter.listen(signal, () => this.abandon(waiter, abortedBy(signal, this.key)));
      if (!this.holder && !this.contender) return this.contend();
      this.wait(waiter);
      this.lookout.begin();
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
    // Where others have just had it, more will come.
    const tokens = this.waiting.size > 1 || this.turns ? this.limits.handOvers : 1;
    return { ttl, minHold, retryInterval, isPatient: patience > 0, fair, tokens, holding, share };
  }

  isWanted({ ttl, minHold }: Wish): boolean {
    const { settings } = this.waiting.first as Waiter;
    return settings.ttl === ttl && settings.minHold === minHold;
  }

  granted({ owner, wish, token, sentAt, isContested }: Grant): void {
    const { attempts } = this.contender as Contender;
    this.contender = undefined;
    this.outcome = undefined;
    this.turns = new Turns(this.limits, wish.tokens, token, isContested);
    const { key, driver, runtime } = this;
    const { ttl, minHold, share } = wish;
    const fencingToken = this.turns.take();
    const tenure = new Tenure(runtime, this, { key, owner, driver, ttl, minHold, fencingToken, share, sentAt, grantedAt: now() });
    this.give(this.waiting.first as Waiter, tenure, attempts);
    if (this.isAnyLate) this.removeLate();
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
  passOn(tenure: Tenure, endedAt: number): boolean {
    if (this.holder !== tenure || this.waiting.size === 0 || tenure.keepUntil > endedAt) return false;
    // Those who listen may take their time, and may call off the next one's wait.
    const time = tenure.tellReleased() ? now() : endedAt;
    const next = this.waiting.first;
    if (!next) return false;
    this.outcome = undefined;
    if (this.turns && this.mayPassTo(next, tenure, this.turns, time)) {
      const successor = tenure.handOver(this.turns.take(), time);
      this.give(next, successor, 0);
      if (this.waiting.size > 0) this.turns.extend(successor);
    } else {
      this.free();
      this.contend(tenure);
    }
    return true;
  }

  /** The tenure is over at the store, or soon will be: the next one here asks for one of its own. */
  left(tenure: Tenure): void {
    if (this.holder !== tenure) return;
    this.free();
    if (this.waiting.size > 0) this.contend();
    else this.rest();
  }

  get lookInterval(): number | undefined {
    const { first } = this.waiting;
    return first && 2 * first.settings.retryInterval;
  }

  looked(outage: LockError | undefined): void {
    this.outcome = outage;
  }

  /** Nobody here holds the key: there is nothing to look after. */
  private free(): void {
    this.holder = undefined;
    this.lookout.end();
  }

  private contend(yields?: Tenure): void {
    this.contender = new Contender(this, yields);
    this.contender.ask();
  }

  private mayPassTo({ settings }: Waiter, tenure: Tenure, turns: Turns, time: number): boolean {
    if (turns.areOver(time)) return false;
    // A minHold outlives the process only if the store knows of it.
    return (
      settings.ttl === tenure.ttl && settings.minHold === 0 && tenure.isRenewed && tenure.validUntil - time >= validity(tenure.ttl) / 2
    );
  }

  private give(waiter: Waiter, tenure: Tenure, attempts: number): void {
    const { key, owner, fencingToken } = tenure;
    this.holder = tenure;
    this.waiting.delete(waiter);
    waiter.end();
    if (this.waiting.size > 0) this.lookout.begin();
    else this.lookout.end();
    const { guardsBody, maxHold } = waiter.settings;
    const lease = new Lease(tenure, guardsBody, maxHold, true);
    const { events } = this.runtime;
    if (events.isHeard('acquired')) {
      waiter.inContext(() => events.emit('acquired', { key, owner, fencingToken, waited: waiter.waited, attempts }));
    }
    this.runtime.acquireEnds();
    waiter.resolve(lease);
  }

  /** From the first time that the key was found taken. */
  private wait(waiter: Waiter): void {
    if (waiter.isWaiting || waiter.isOver) return;
    waiter.isWaiting = true;
    const { events } = this.runtime;
    if (events.isHeard('acquired') || events.isHeard('timeout')) waiter.keepContext();
    waiter.limit(() => this.deadline(waiter));
    if (waiter.settings.patience > 0) events.emit('waiting', { key: this.key });
  }

  /** The first one has one last look, since the last one may be long ago. Nobody waits for an answer for longer than a requestTimeout. */
  private deadline(waiter: Waiter): void {
    const { first } = this.waiting;
    if (waiter !== first && (this.holder || this.outcome)) return this.remove(waiter, this.reasonAtTheEnd(waiter));
    waiter.isLate = this.isAnyLate = true;
    waiter.grant(this.runtime.requestTimeout, () => this.remove(waiter, this.reasonAtTheEnd(waiter, true)));
    if (this.holder) void this.lookout.look().then(() => this.holder && this.remove(waiter, this.reasonAtTheEnd(waiter)));
    else if (waiter === first && waiter.settings.patience > 0) this.contender?.ask();
  }

  /** The next one has waited by the retryInterval of the first, and goes on by its own. */
  private abandon(waiter: Waiter, error: LockError): void {
    const { first } = this.waiting;
    this.remove(waiter, error);
    if (waiter === first && this.contender?.isWaiting) this.contender.ask();
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
      waiter.inContext(() => this.runtime.events.emit('timeout', { key: this.key, waited: waiter.waited, attempts }));
    }
    if (this.waiting.size === 0) this.lookout.end();
    else this.lookout.begin();
    if (!this.holder && !this.contender && this.waiting.size === 0) this.rest();
    this.runtime.acquireEnds();
    waiter.reject(error);
  }

  private removeLate(): void {
    this.isAnyLate = false;
    for (const waiter of this.waiting) if (waiter.isLate) this.remove(waiter, this.reasonAtTheEnd(waiter));
  }

  /** Nobody has it, nobody wants it. */
  private rest(): void {
    this.outcome = undefined;
    this.turns = undefined;
    this.onIdle(this);
  }

  /** @param isAtTheLatest the request that it was given time for has no answer, however its silence is measured. */
  private reasonAtTheEnd(waiter: Waiter, isAtTheLatest = false): LockError {
    const { key, outcome } = this;
    const isOutage = outcome instanceof LockError && !(this.holder && this.lookout.isOutdatedFor(this.holder));
    if (isOutage) return ownCopyOf(outcome);
    const isKnown = this.holder ?? outcome ?? this.turns;
    const asked = this.holder ? this.lookout : this.contender;
    const silence = asked?.silence ?? 0;
    if (!isKnown || silence >= this.runtime.requestTimeout || (isAtTheLatest && silence > 0)) return unanswered(key);
    const holder = this.holder?.owner ?? (outcome as Taken | undefined)?.holder ?? undefined;
    const by = holder ? `held by ${holder}` : 'taken';
    return new LockTimeoutError(`Could not acquire "${key}" within ${Math.round(waiter.waited)} ms: it is ${by}.`, { key, holder });
  }
}
