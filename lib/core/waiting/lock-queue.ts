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
import { lastAnswer, Waiter, type AcquireCall, type LastAnswer } from './waiter.js';

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
  /** The request that callers whose wait timeout is over await. */
  private look: Promise<void> | undefined;
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
    if (this.contenders.some(({ requests }) => requests.isAsking)) return;
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

  /** The holder of the key, as far as is known. */
  get holder(): Holder | undefined {
    const { outcome, at = 0 } = this.refusedLast?.refusal ?? {};
    if (this.holders[0] || !outcome || !('holder' in outcome)) return holderOf(this.key, this.holders[0]?.owner);
    return holderOf(this.key, outcome.holder, at + outcome.remaining);
  }

  granted(contender: Contender, token: number | null, time: number): void {
    const { runtime, first } = this;
    this.leaves(contender);
    this.isInUse = true;
    const tenure = new Tenure(this, contender, first.settings, token, time);
    this.holders = added(this.holders, tenure);
    this.give(first, tenure.turn, contender.attempts);
    if (runtime.stopping.aborted) this.stop();
  }

  /** The key is taken, or the store gave no answer; it is asked again. */
  refused(contender: Contender): void {
    this.refusedLast = contender;
    const isStopping = this.runtime.stopping.aborted;
    for (const waiter of this.waiting) {
      if (waiter.isOverdue) this.end(waiter, this.lastAnswer);
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
    this.queues.forgetIdle(this);
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

  /** The caller of this process that has the key, and renews it; `undefined`: a contender asks the store. */
  private get renewing(): Tenure | undefined {
    return this.contenders.length > 0 ? undefined : this.holders[0];
  }

  private get lastAnswer(): LastAnswer {
    const { renewing, refusedLast, isInUse, runtime } = this;
    const answeredAt = renewing ? renewing.answeredAt : (refusedLast?.refusal?.at ?? (isInUse ? -Infinity : undefined));
    return lastAnswer(answeredAt, (renewing ?? this.contenders[0]?.requests)?.silence ?? 0, now(), runtime.requestTimeout);
  }

  /** The caller's wait timeout is over. */
  private deadline(waiter: Waiter): void {
    const { lastAnswer, first, renewing, runtime } = this;
    // To renew a fixed lease would make it longer.
    if (renewing?.isRenewed === false || (waiter !== first && lastAnswer === 'fresh answer')) return this.end(waiter, lastAnswer);
    // The answer to the look may be lost. A later request of the holder may have been answered.
    const outcome = (): LastAnswer => (this.lastAnswer === 'fresh answer' ? 'fresh answer' : 'none since the outage began');
    waiter.grant(runtime.requestTimeout, () => this.end(waiter, outcome()));
    this.look ??= this.lookOnce().finally(() => (this.look = undefined));
    void this.look.then(() => this.end(waiter, this.lastAnswer));
  }

  private async lookOnce(): Promise<void> {
    await this.renewing?.renew().catch(() => undefined);
    // If the holder has lost the key, a contender asks.
    const [contender] = this.contenders;
    if (contender && !contender.requests.isAsking) contender.requests.ask();
    // What was granted with the times of a caller that has gone is asked for once more, for the next one.
    while (contender?.requests.isAsking) await contender.requests.settled;
  }

  /** The contender asks at once, and continues with the retryInterval of the next waiter. */
  private abandon(waiter: Waiter, error: LockError): void {
    const { first } = this;
    this.remove(waiter, error);
    const [contender] = this.contenders;
    if (waiter === first && contender && !contender.requests.isAsking) contender.requests.ask();
  }

  /** Its wait timeout is over: contention, or an outage. */
  private end(waiter: Waiter, answer: LastAnswer): void {
    if (!this.waiting.has(waiter)) return;
    const { key, renewing, refusedLast } = this;
    const outcome = renewing ? renewing.unanswered?.error : refusedLast?.refusal?.outcome;
    if (outcome instanceof LockError) return this.remove(waiter, ownCopyOf(outcome));
    if (answer === 'none since the outage began') return this.remove(waiter, unanswered(key));
    // A single try does not wait, so it is part of no deadlock.
    const deadlock = waiter.settings.patience > 0 ? this.queues.deadlockOf(this, waiter) : undefined;
    this.remove(waiter, timedOut(key, waiter.waited, this.holder, deadlock));
  }

  private remove(waiter: Waiter, error: LockError): void {
    if (!this.waiting.delete(waiter)) return;
    waiter.end();
    const attempts = this.contenders[0]?.attempts ?? 0;
    this.adapt();
    waiter.inContext(() => waiter.emitEnd(this.runtime.events, this.key, error, attempts));
    this.queues.forgetIdle(this);
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
    const at = ({ refusal }: Partial<Contender> = {}): number => refusal?.at ?? -Infinity;
    for (const other of this.contenders) if (at(other) > at(this.refusedLast)) this.refusedLast = other;
  }
}
