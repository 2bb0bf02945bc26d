import { onAbort } from '../core/util/abort.js';
import { abortedBy, LockAbortedError, LockConfigError, LockLostError } from '../core/model/errors.js';
import type { LockEventEmitter } from '../core/model/events.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import { checkOptions, defined, only } from '../core/model/check-options.js';
import type { Lease } from '../core/model/lease.js';
import { ACQUIRE_CHECKS, type ResolvedOptions } from '../core/model/options.js';
import type { Lifecycle } from '../core/holding/lifecycle.js';
import type { KeyLock } from './key-lock.js';

export interface LeaderElectionOptions {
  /** Lease length of a term, milliseconds, from 10: a leader that dies is succeeded within it and a second. Default that of the {@link Locks}. */
  keyTimeout?: number;
  /** A standby looks by itself after two of these at the latest, milliseconds: a wake-up may get lost. Default that of the {@link Locks}. */
  retryInterval?: number;
  /** The longest term, milliseconds: then its signal aborts, and the leader goes to the end of the line. Default: no limit. */
  maxHold?: number;
}

export interface RunOptions {
  /** Calls the candidate off: a standby at once, a leader by its term's signal. */
  signal?: AbortSignal;
}

/** One reign. It is the lease of the key `<name>-leader`, and `currentLease()` inside its work. */
export interface Term extends Lease {
  /** When the store granted it, by the store's clock; `null` where the store's tokens do not tell. */
  readonly since: Date | null;
}

/** Who leads, as the store knows it. */
export interface Leader {
  /** `app@host:pid:uuid`: the `owner` of its term. */
  readonly owner: string;
  /** As {@link Term.since}. */
  readonly since: Date | null;
  readonly fencingToken: number | null;
}

export interface LeaderEvents {
  /** A term begins: its work is about to be called. */
  elected: Term;
  /** A term is over, or ends: it is lost, over its `maxHold`, resigned, called off, or its work is done. Once for each `elected`. */
  revoked: Term;
}

const ELECTION_CHECKS = only(ACQUIRE_CHECKS, 'keyTimeout', 'retryInterval', 'maxHold');
const RUN_CHECKS = only(ACQUIRE_CHECKS, 'signal');

type Work = (term: Term) => unknown;
type HeldTerm = Term & HeldLease;

/**
 * One candidate for the leadership of all that campaign for one name: at most one of them leads at a time. The others stand by in the order in
 * which they came.
 */
export class LeaderElection {
  private readonly events: LockEventEmitter<LeaderEvents>;
  private readonly terms: ResolvedOptions;
  private readonly where: string;
  private candidacy: { readonly stop: AbortController; readonly ended: Promise<unknown> } | undefined;
  private term: Term | undefined;

  constructor(
    private readonly mutex: KeyLock,
    private readonly runtime: Lifecycle,
    defaults: ResolvedOptions,
    options: LeaderElectionOptions,
  ) {
    this.where = `Leader election "${mutex.key}"`;
    checkOptions(options, this.where, ELECTION_CHECKS);
    const { keyTimeout, retryInterval, maxHold } = { ...defaults, maxHold: undefined, ...defined(options) };
    this.terms = { ...defaults, keyTimeout, retryInterval, maxHold, minHold: 0, fair: true, waitTimeout: Infinity };
    this.events = runtime.events.forOther<LeaderEvents>();
  }

  /** The key as the store knows it: namespace, name and `-leader`. */
  get key(): string {
    return this.mutex.key;
  }

  /**
   * Campaigns, through outages too, and calls the work once elected. Resolves when the work has ended while it led, also if it was asked to end, or
   * when {@link resign} ended the campaign; errors of the work come through as they are. The term is given back first.
   *
   * A term that ends before its work does (lost, or over its `maxHold`) aborts the term's signal. When the work has ended, the candidate campaigns again
   * and calls it anew; an error of the work under the term that had ended is logged as a warning.
   *
   * @throws {LockAbortedError} when `signal` or the closing of the locks ended the campaign, or the work, which heeded its term's signal.
   * @throws {StoreError} where no retry helps, such as a missing permission.
   * @throws {LockConfigError} when it runs already, or an option is wrong.
   */
  async run(work: Work, options: RunOptions = {}): Promise<void> {
    checkOptions(options, this.where, RUN_CHECKS);
    if (this.candidacy) throw new LockConfigError(`${this.where} runs already. Another candidate is another leaderElection().`, this.mutex);
    const stop = new AbortController();
    const forget = this.stopWith(stop, options.signal);
    const running = this.stand(work, stop.signal);
    this.candidacy = { stop, ended: running.catch(() => undefined) };
    try {
      await running;
    } finally {
      this.candidacy = undefined;
      for (const each of forget) each();
    }
  }

  /** Whether the present term is ours, and nothing has asked it to end: synchronous, and never true of a lease that has run out. */
  isLeader(): boolean {
    return this.term !== undefined && this.term.remaining() > 0;
  }

  /**
   * Asks the store who leads. While the key passes on, for a second at most, it is the standby to whom it is offered.
   *
   * @throws {StoreError} when the store does not answer.
   * @throws {LockAbortedError} when the locks are closed.
   */
  async leader(): Promise<Leader | null> {
    this.runtime.assertOpen(this.key);
    const { holder, token } = await this.mutex.check();
    return holder === null ? null : { owner: holder, since: this.timeOf(token), fencingToken: token };
  }

  /**
   * Ends {@link run}: a standby leaves the line, a leader's term aborts its signal and is given back when its work has ended.
   *
   * @returns when that is so; at once inside the work itself, which would wait for its own end.
   */
  async resign(): Promise<void> {
    const { candidacy } = this;
    candidacy?.stop.abort(new LockAbortedError(`The candidate for "${this.key}" has resigned.`, { key: this.key, reason: 'resigned' }));
    if (!this.mutex.isHeldHere) await candidacy?.ended;
  }

  /** Listens; the returned function stops listening. Be quick: the work begins, or hears of its end, after that. */
  on<E extends keyof LeaderEvents>(event: E, listener: (term: Term) => unknown): () => void {
    return this.events.on(event, listener);
  }

  private timeOf(token: number | null): Date | null {
    return (token !== null && this.mutex.kind.driver.timeOf?.(token)) || null;
  }

  private stopWith(stop: AbortController, signal: AbortSignal | undefined): (() => void)[] {
    const { key } = this;
    const { stopping } = this.runtime;
    const on = (cause: AbortSignal, reason: () => LockAbortedError): (() => void) => {
      if (cause.aborted) stop.abort(reason());
      return onAbort(cause, () => stop.abort(reason()));
    };
    const closing = `The candidate for "${key}" is called off: the locks are being closed.`;
    const forget = [on(stopping, () => new LockAbortedError(closing, { key, reason: 'shutdown' }))];
    if (signal) forget.push(on(signal, () => abortedBy(signal, key)));
    return forget;
  }

  private async stand(work: Work, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const lease = await this.elected(stop);
      if (lease && (await this.lead(lease, work, stop))) return;
    }
    const reason = stop.reason as LockAbortedError;
    if (reason.reason !== 'resigned') throw reason;
  }

  /** Waits for months if need be; `undefined` when it is called off. */
  private async elected(stop: AbortSignal): Promise<HeldLease | undefined> {
    try {
      return await this.mutex.take({ ...this.terms, signal: stop }, true);
    } catch (error) {
      if (stop.aborted) return undefined;
      throw error;
    }
  }

  /** Whether the work has ended while it led. */
  private async lead(lease: HeldLease, work: Work, stop: AbortSignal): Promise<boolean> {
    const { signal } = lease;
    if (stop.aborted || signal.aborted || lease.remaining() === 0) {
      await lease.release();
      return false;
    }
    const term: HeldTerm = Object.assign(lease, { since: this.timeOf(lease.fencingToken) });
    const forgetStop = onAbort(stop, () => term.abort(stop.reason as LockAbortedError));
    const failure = await this.rule(term, work);
    forgetStop();
    const wasOurs = await term.release();
    const isLost = !wasOurs || signal.reason instanceof LockLostError;
    if (!failure) return !isLost;
    if (isFrom(signal, failure.error)) return false;
    if (!isLost) throw failure.error;
    this.runtime.events.warn(() => `The work of a term of "${this.key}" failed when the term had ended: ${String(failure.error)}`);
    return false;
  }

  /** Resolves to the error of the work, if it fails. */
  private async rule(term: HeldTerm, work: Work): Promise<{ readonly error: unknown } | undefined> {
    this.term = term;
    const revoke = (): void => {
      if (this.term !== term) return;
      this.term = undefined;
      this.events.emit('revoked', term);
    };
    const forgetLoss = onAbort(term.signal, revoke);
    term.onRelease(() => {
      forgetLoss();
      revoke();
    });
    this.events.emit('elected', term);
    try {
      // A listener may have called it off.
      term.signal.throwIfAborted();
      await this.mutex.holding(term, () => work(term));
      return undefined;
    } catch (error) {
      return { error };
    }
  }
}

/** Whether this is how work ends that heeds the signal. */
function isFrom({ aborted, reason }: AbortSignal, error: unknown): boolean {
  // By its shape: Node's own errors may be of another realm.
  const { cause, name } = Object(error) as { cause?: unknown; name?: unknown };
  return aborted && (error === reason || cause === reason || name === 'AbortError');
}
