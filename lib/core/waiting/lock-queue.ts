import type { LockQueues } from './lock-queues.js';
import type { HeldLease } from '../holding/held-lease.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import { Tenure, type TenureQueue, type TurnLimits } from '../holding/tenure.js';
import type { Turn } from '../holding/turn.js';
import { watchdog } from '../holding/watchdog.js';
import { abortedBy, closed, LockError, ownCopyOf, stopped, timedOut, unanswered, type Holder } from '../model/errors.js';
import { ownerOf } from '../model/owner.js';
import type { LeaseDriver, Share } from '../store/lease-driver.js';
import { now } from '../util/clock.js';
import { LinkedList } from '../util/linked-list.js';
import { added, removed } from '../util/short-list.js';
import { Contender } from './contender.js';
import { Waiter, type AcquireCall } from './waiter.js';

/**
 * The holder as this process knows it: it may be one of its own callers, also by another queue.
 *
 * @param holder as in the reply of the store. @param end of what it has, if the store has said so.
 */
export function holderOf(key: string, holder: string | null | undefined, end?: number): Holder | undefined {
  const owner = ownerOf(holder);
  if (!owner) return undefined;
  const turn = watchdog.tenureOf(key, owner)?.turn;
  return { owner, label: turn?.label, since: turn?.grantedAt, keptUntil: owner === holder ? undefined : end };
}

/**
 * The callers of this process that want one key. As many contenders ask the store as callers may hold the key at the same time: one, except for a
 * semaphore. Within the limits, the key passes from one caller to the next without a request.
 */
export class LockQueue implements TenureQueue {
  readonly runtime: Lifecycle;
  readonly limits: TurnLimits;
  /** Whether the key was granted to this queue before: more calls are likely. */
  isInUse = false;
  readonly waiting = new LinkedList<Waiter>();
  contenders: readonly Contender[] = [];
  holders: readonly Tenure[] = [];
  /** The contender that was refused last, of those that still ask. */
  refusedLast: Contender | undefined;
  private isAnyLate = false;
  /** Whether a holder is renewed for those that are late. */
  private isRenewing = false;
  /** The share that the last caller asks for. Only the number of permits can be another one than that of the callers before. */
  share: Share | undefined;

  /**
   * @param id of the queue among those of the driver.
   * @param maxHolders how many callers may hold the key at the same time, as the last one says.
   */
  constructor(
    readonly queues: LockQueues,
    readonly driver: LeaseDriver,
    readonly key: string,
    readonly id: string | number,
    public maxHolders: number,
  ) {
    this.runtime = queues.runtime;
    this.limits = queues.limits;
  }

  join(call: AcquireCall): Promise<HeldLease> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(call, resolve, reject);
      this.runtime.begins('acquire');
      this.waiting.add(waiter);
      this.share = call.share;
      const { signal } = call.options;
      if (signal) waiter.listen(signal, () => this.abandon(waiter, abortedBy(signal, this.key)));
      if (!this.mayContend) this.wait(waiter);
      while (this.mayContend) this.contend();
      this.adapt();
    });
  }

  /** The locks are being closed: only work that is under way may wait, but a request under way may succeed. */
  stop(): void {
    if (this.contenders.some(({ isAsking }) => isAsking)) return;
    for (const waiter of this.waiting) if (!waiter.isUnderLock) this.remove(waiter, stopped(this.key));
  }

  /** The locks are closed: no request under way counts any more. */
  close(): void {
    for (const waiter of this.waiting) this.remove(waiter, closed(this.key));
  }

  /** The waiter that gets the key next. */
  get first(): Waiter {
    return this.waiting.first as Waiter;
  }

  get tokens(): number {
    return this.waiting.size > 1 || this.isInUse ? this.limits.handOvers : 1;
  }

  /** The holder of the key, as far as is known. */
  get holder(): Holder | undefined {
    const { outcome, refusedAt = 0 } = this.refusedLast ?? {};
    if (this.holders[0] || !outcome || !('holder' in outcome)) return holderOf(this.key, this.holders[0]?.owner);
    return holderOf(this.key, outcome.holder, refusedAt + outcome.remaining);
  }

  granted(contender: Contender, token: number | null, time: number): void {
    const { runtime, first } = this;
    this.leaves(contender);
    this.isInUse = true;
    const tenure = new Tenure(this, contender, first.settings, token, time);
    this.holders = added(this.holders, tenure);
    this.give(first, tenure.turn, contender.attempts);
    this.endLate();
    if (runtime.stopping.aborted) this.stop();
  }

  /** The key is taken, or the store gave no answer; it is asked again. */
  refused(contender: Contender): void {
    this.refusedLast = contender;
    const isStopping = this.runtime.stopping.aborted;
    for (const waiter of this.waiting) {
      if (waiter.isOverdue) this.remove(waiter, reasonAtTheEnd(this, waiter));
      else if (isStopping && !waiter.isUnderLock) this.remove(waiter, stopped(this.key));
      else this.wait(waiter);
    }
  }

  /** No further try can help. */
  failed(contender: Contender, error: LockError): void {
    this.leaves(contender);
    for (const waiter of this.waiting) this.remove(waiter, ownCopyOf(error));
  }

  ended(tenure: Tenure): void {
    if (!this.holders.includes(tenure)) return;
    this.holders = removed(this.holders, tenure);
    if (tenure.state.is !== 'lost') this.queues.keep(tenure);
    while (this.mayContend) this.contend();
    this.endIfIdle();
  }

  /**
   * The part of one caller has ended. The key passes to the next caller, without a request or by one that offers it to other processes first; `false`: no caller waits,
   * or the key has a `minHold`.
   */
  passOn(tenure: Tenure, endedAt: number): boolean {
    if (this.waiting.size === 0 || tenure.turn.keepUntil > endedAt) return false;
    // Listeners can take long, and can abort the next caller.
    const time = tenure.turn.emitReleased() ? now() : endedAt;
    if (this.waiting.size === 0) return false;
    const { turn } = tenure;
    const next = tenure.nextTurn(time, this.first.settings);
    if (next) {
      this.give(this.first, next, 0);
      const { events } = this.runtime;
      if (events.isHeard('passedOn')) events.emit('passedOn', { ...turn.event, to: next.label });
      if (this.waiting.size > 0) tenure.extendSoon(time);
      return true;
    }
    tenure.stop();
    this.holders = removed(this.holders, tenure);
    this.contend(tenure);
    while (this.mayContend) this.contend();
    return true;
  }

  private get mayContend(): boolean {
    const { length } = this.contenders;
    return length < this.waiting.size && length + this.holders.length < this.maxHolders;
  }

  /** @param yields a tenure that the request gives up. */
  contend(yields?: Tenure): void {
    // One that is queued at the store already need not compete with a new one for what this process gives up.
    let contender = yields && this.contenders.find(({ mayYield }) => mayYield);
    if (!contender) this.contenders = added(this.contenders, (contender = new Contender(this)));
    contender.askFor(yields);
  }

  private give(waiter: Waiter, { root: lease }: Turn, attempts: number): void {
    this.waiting.delete(waiter);
    waiter.end();
    this.adapt();
    waiter.emitGranted(this.runtime.events, lease, attempts);
    this.runtime.ends('acquire');
    waiter.resolve(lease);
  }

  /** Starts the caller's wait timeout, when the key was found taken for the first time. */
  private wait(waiter: Waiter): void {
    if (waiter.isOver) return;
    waiter.settings.trace?.waits(this.holder?.owner);
    if (waiter.isWaiting) return;
    this.queues.waits(waiter);
    waiter.begin(this.runtime.events, this.key, () => this.deadline(waiter));
  }

  /**
   * Asks the store once more: always for the first waiter, for another one only if the last answer is older than a requestTimeout, because an outage
   * may have begun since. It waits for one requestTimeout at most.
   */
  private deadline(waiter: Waiter): void {
    const { first, contenders, runtime } = this;
    const [contender] = contenders;
    const holder = contender ? undefined : this.holders[0];
    const answeredAt = holder?.answeredAt ?? this.refusedLast?.refusedAt;
    const isKnown = answeredAt !== undefined && now() < answeredAt + runtime.requestTimeout;
    // To renew a fixed lease would make it longer.
    if (holder?.isRenewed === false || (waiter !== first && isKnown)) return this.remove(waiter, reasonAtTheEnd(this, waiter));
    waiter.isLate = this.isAnyLate = true;
    waiter.grant(runtime.requestTimeout, () => this.remove(waiter, reasonAtTheEnd(this, waiter, true)));
    if (waiter.settings.patience === 0 || (waiter !== first && contender?.isAsking)) return;
    if (contender) return contender.ask();
    if (!holder || this.isRenewing) return;
    this.isRenewing = true;
    const ended = (): void => {
      this.isRenewing = false;
      if (this.holders.length > 0) this.endLate();
    };
    holder.renew().then(ended, ended);
  }

  private endLate(): void {
    if (this.isAnyLate) for (const waiter of this.waiting) if (waiter.isLate) this.remove(waiter, reasonAtTheEnd(this, waiter));
    this.isAnyLate = false;
  }

  /** The contender asks at once, and continues with the retryInterval of the next waiter. */
  private abandon(waiter: Waiter, error: LockError): void {
    const { first } = this;
    this.remove(waiter, error);
    const [contender] = this.contenders;
    if (waiter === first && contender && !contender.isAsking) contender.ask();
  }

  private remove(waiter: Waiter, error: LockError): void {
    if (!this.waiting.delete(waiter)) return;
    waiter.end();
    const attempts = this.contenders[0]?.attempts ?? 0;
    this.adapt();
    waiter.inContext(() => waiter.emitEnd(this.runtime.events, this.key, error, attempts));
    this.endIfIdle();
    this.runtime.ends('acquire');
    waiter.reject(error);
  }

  /** To be called when the callers have changed: cancels contenders without a caller. */
  private adapt(): void {
    while (this.contenders.length > this.waiting.size) {
      const last = this.contenders.at(-1) as Contender;
      this.leaves(last);
      last.cancel();
    }
  }

  /** It does not ask any more. How the others were answered still counts: a semaphore has several. */
  private leaves(contender: Contender): void {
    this.contenders = removed(this.contenders, contender);
    if (this.refusedLast !== contender) return;
    this.refusedLast = undefined;
    for (const other of this.contenders) if (other.refusedAt > (this.refusedLast?.refusedAt ?? -Infinity)) this.refusedLast = other;
  }

  private endIfIdle(): void {
    if (this.waiting.size > 0 || this.holders.length > 0) return;
    this.queues.forget(this);
  }
}

/** Contention, or an outage. @param isAtTheLatest whether the last requestTimeout of the caller is over, too. */
function reasonAtTheEnd(queue: LockQueue, waiter: Waiter, isAtTheLatest = false): LockError {
  const { key, isInUse, contenders } = queue;
  // Without a contender a caller of this process has the key.
  const tenure = contenders.length > 0 ? undefined : queue.holders[0];
  const outcome = tenure ? tenure.unanswered?.error : queue.refusedLast?.outcome;
  if (outcome instanceof LockError) return ownCopyOf(outcome);
  const silence = (tenure ? tenure.unanswered && now() - tenure.unanswered.since : contenders[0]?.silence) ?? 0;
  const isKnown = tenure ?? outcome ?? isInUse;
  if (!isKnown || silence >= queue.runtime.requestTimeout || (isAtTheLatest && silence > 0)) return unanswered(key);
  // A single try does not wait, so it is part of no deadlock.
  const deadlock = waiter.settings.patience > 0 ? queue.queues.deadlockOf(queue, waiter) : undefined;
  return timedOut(key, waiter.waited, queue.holder, deadlock);
}
