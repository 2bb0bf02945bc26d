import { onAbort } from '../core/util/abort.js';
import { abortedBy, configError, LockAbortedError, LockLostError, stopped } from '../core/model/errors.js';
import type { LockEventEmitter } from '../core/model/events.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import { checkOptions, defined, only } from '../core/model/check-options.js';
import type { Lease } from '../core/model/lease.js';
import { ACQUIRE_CHECKS, type ResolvedOptions } from '../core/model/options.js';
import type { Lifecycle } from '../core/holding/lifecycle.js';
import { ownerOf } from '../core/model/owner.js';
import type { KeyLock } from './key-lock.js';

/** Options of {@link LeaderElection}. */
export interface LeaderElectionOptions {
  /** Lease length of a term, milliseconds, from 10. After a leader dies, another one is elected within this and a second. Default that of the {@link Locks}. */
  keyTimeout?: number;
  /** A standby asks after two of these at the latest, milliseconds, because a wake-up can be lost. Default that of the {@link Locks}. */
  retryInterval?: number;
  /** The longest term, milliseconds. Then its signal aborts, and the leader goes to the end of the queue. Default: no limit. */
  maxHold?: number;
}

/** Options of {@link LeaderElection.run}. */
export interface RunOptions {
  /** Ends the candidacy: of a standby at once, of a leader by the signal of its term. */
  signal?: AbortSignal;
}

/** The time in which a candidate leads. It is the lease of the key `<name>-leader`, and `currentLease()` inside the work. */
export interface Term extends Lease {
  /** When the store granted it, by the store's clock; `null` if that is unknown. */
  readonly since: Date | null;
}

/** The leader, according to the store. */
export interface Leader {
  /** The `owner` of its term: `app@host:pid:uuid`. */
  readonly owner: string;
  /** When the store granted the term, by the store's clock; `null` if that is unknown. */
  readonly since: Date | null;
  readonly fencingToken: number | null;
}

/** Events of {@link LeaderElection}. */
export interface LeaderEvents {
  /** A term begins. The work is called after the listeners. */
  elected: Term;
  /** A term ends: it is lost, `maxHold` is over, the candidate resigns or is aborted, or the work has ended. Once for each `elected`. */
  revoked: Term;
}

const ELECTION_CHECKS = only(ACQUIRE_CHECKS, 'keyTimeout', 'retryInterval', 'maxHold');
const RUN_CHECKS = only(ACQUIRE_CHECKS, 'signal');

type Work = (term: Term) => unknown;

/** One of the candidates for a name. At most one of them leads at a time; the others stand by, in the order of their arrival. */
export class LeaderElection {
  private readonly events: LockEventEmitter<LeaderEvents>;
  private terms: ResolvedOptions;
  private readonly where: string;
  private candidacy: { readonly stop: AbortController; readonly ended: Promise<unknown> } | undefined;
  private term: Term | undefined;

  /** @internal @param label for operators, events and the log. */
  constructor(
    private readonly mutex: KeyLock,
    private readonly runtime: Lifecycle,
    defaults: ResolvedOptions,
    options: LeaderElectionOptions,
    label: string,
  ) {
    this.where = `Leader election "${mutex.key}"`;
    checkOptions(options, this.where, ELECTION_CHECKS);
    const { keyTimeout, retryInterval, maxHold } = { ...defaults, maxHold: undefined, ...defined(options) };
    const fixed = { minHold: 0, renew: true, fair: true, waitTimeout: Infinity, isStandby: true };
    this.terms = { ...defaults, label, keyTimeout, retryInterval, maxHold, ...fixed };
    this.events = runtime.events.forOther<LeaderEvents>();
  }

  /** The key as the store knows it: namespace, name and `-leader`. */
  get key(): string {
    return this.mutex.key;
  }

  /** @internal */
  set label(label: string) {
    this.terms = { ...this.terms, label };
  }

  /**
   * Campaigns until it is elected, also during outages, and then calls the work. It releases the term and resolves when the work has ended while it led,
   * or when {@link resign} has ended the campaign. An error of the work is passed on unchanged.
   *
   * If the term ends before the work (it is lost, or its `maxHold` is over), the term's signal aborts. When the work has ended, the candidate campaigns
   * again, and calls the work again. An error of the work after the end of its term is logged as a warning.
   *
   * @throws {LockAbortedError} when `signal` or the closing of the locks ended the campaign, or ended the work by the term's signal.
   * @throws {StoreError} if no retry can help, such as a missing permission.
   * @throws {LockConfigError} when it runs already, when this call chain leads under the same name, or an option is wrong.
   */
  async run(work: Work, options: RunOptions = {}): Promise<void> {
    if (typeof work !== 'function') throw configError('OPTION', `${this.where}: the work must be a function: run(async (term) => …).`);
    checkOptions(options, this.where, RUN_CHECKS);
    if (this.candidacy) throw configError('CALL', `${this.where} runs already. Another candidate is another leaderElection().`, this.mutex);
    // To share the term would make two leaders, and to wait for its end would be to wait for itself.
    if (this.mutex.isHeldHere)
      throw configError('DEADLOCK', `${this.where}: this call leads already, and would wait for itself.`, this.mutex);
    const stop = new AbortController();
    const forget = this.stopWith(stop, options.signal);
    const running = this.stand(work, stop.signal);
    this.candidacy = { stop, ended: running.catch(() => undefined) };
    this.runtime.candidates.add(this);
    try {
      await running;
    } finally {
      this.candidacy = undefined;
      this.runtime.candidates.delete(this);
      for (const each of forget) each();
    }
  }

  /** Whether this candidate leads. Synchronous, and never true for an expired lease, or after the term's signal has aborted. */
  isLeader(): boolean {
    return this.term !== undefined && this.term.remaining() > 0;
  }

  /**
   * Asks the store who leads. Between two leaders, for one second at most, it is the standby that is offered the key.
   *
   * @throws {StoreError} when the store does not answer.
   * @throws {LockAbortedError} when the locks are closed.
   */
  async leader(): Promise<Leader | null> {
    this.runtime.assertOpen(this.key);
    const { holder, token } = await this.mutex.check();
    return holder === null || ownerOf(holder) !== holder ? null : { owner: holder, since: this.timeOf(token), fencingToken: token };
  }

  /**
   * Ends {@link run}: a standby leaves the queue; a leader's signal aborts, and its term is released when the work has ended.
   *
   * @returns when that is done; inside the work at once, because it would wait for its own end.
   */
  async resign(): Promise<void> {
    const { candidacy } = this;
    candidacy?.stop.abort(new LockAbortedError(`The candidate for "${this.key}" has resigned.`, { key: this.key, reason: 'resigned' }));
    if (!this.mutex.isHeldHere) await candidacy?.ended;
  }

  /** Adds a listener; the returned function removes it. Listeners are called before the work, and should be quick. */
  on<E extends keyof LeaderEvents>(event: E, listener: (term: Term) => unknown): () => void {
    return this.events.on(event, listener);
  }

  private timeOf(token: number | null): Date | null {
    return (token !== null && this.mutex.kind.driver.timeOf?.(token)) || null;
  }

  /** Ends the candidacy with these reasons. The returned function forgets the signals. */
  private stopWith(stop: AbortController, signal: AbortSignal | undefined): (() => void)[] {
    const { key, runtime } = this;
    const on = (cause: AbortSignal, end: () => void): (() => void) => {
      if (cause.aborted) end();
      return onAbort(cause, end);
    };
    const forget = [on(runtime.stopping, () => stop.abort(stopped(key)))];
    if (signal) forget.push(on(signal, () => stop.abort(abortedBy(signal, key))));
    return forget;
  }

  private async stand(work: Work, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const lease = await this.mutex.take({ ...this.terms, signal: stop }, true).catch((error: unknown) => {
        if (!stop.aborted) throw error;
      });
      if (lease && (await this.lead(lease, work, stop))) return;
    }
    const reason = stop.reason as LockAbortedError;
    if (reason.reason !== 'resigned') throw reason;
  }

  /** Whether the work has ended while it led. */
  private async lead(lease: HeldLease, work: Work, stop: AbortSignal): Promise<boolean> {
    const { signal } = lease;
    if (stop.aborted || signal.aborted || lease.remaining() === 0) {
      await lease.release();
      return false;
    }
    const term = (this.term = Object.assign(lease, { partOf: 'leader election' as const, since: this.timeOf(lease.fencingToken) }));
    const revoke = (): void => {
      if (this.term !== term) return;
      this.term = undefined;
      this.events.emit('revoked', term);
    };
    const forgetStop = onAbort(stop, () => term.abort(stop.reason as LockAbortedError));
    const forgetLoss = onAbort(signal, revoke);
    term.onRelease(() => {
      forgetLoss();
      revoke();
    });
    let failure: { readonly error: unknown } | undefined;
    this.events.emit('elected', term);
    try {
      // A listener may have aborted it.
      signal.throwIfAborted();
      await this.mutex.holding(term, () => Promise.resolve(work(term)));
    } catch (error) {
      failure = { error };
    }
    forgetStop();
    const wasOurs = await term.release();
    const isLost = !wasOurs || signal.reason instanceof LockLostError;
    if (!failure) return !isLost;
    const { error } = failure;
    if (isFrom(signal, error)) return false;
    if (!isLost) throw error;
    const { key } = this;
    const line = (): string => `The work of a term of "${key}" failed when the term had ended: ${String(error)}`;
    this.runtime.events.warn('NDL_LATE_TERM', line, { key });
    return false;
  }
}

/** Whether the work has ended with this error because the signal aborted. */
function isFrom({ aborted, reason }: AbortSignal, error: unknown): boolean {
  // Not by `instanceof`: Node's own errors may come from another realm.
  const { cause, name } = Object(error) as { cause?: unknown; name?: unknown };
  return aborted && (error === reason || cause === reason || name === 'AbortError');
}
