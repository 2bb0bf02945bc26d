import { asStoreError, type LockError, LockLostError, messageOf, type Revocation } from '../model/errors.js';
import type { LockEvents, LockKindName } from '../model/events.js';
import type { ResolvedOptions } from '../model/options.js';
import type { LeaseDriver, Share } from '../store/lease-driver.js';
import { duration, now, validity } from '../util/clock.js';
import { LinkedEntry } from '../util/linked-list.js';
import type { Lifecycle } from './lifecycle.js';
import { ending, HELD, isRenewedIn, type TenureState } from './tenure-state.js';
import { Turn } from './turn.js';
import { watchdog } from './watchdog.js';

/** How many holders of this process may have a key in a row, and for how many milliseconds, before it goes back to the store. */
export type TurnLimits = Readonly<Record<'handOvers' | 'time', number>>;

/** The callers of this process that want the key. */
export interface TenureQueue {
  readonly runtime: Lifecycle;
  readonly driver: LeaseDriver;
  readonly key: string;
  readonly limits: TurnLimits;
  /** The part of one caller has ended. Returns whether the next caller takes care of the key. */
  passOn(tenure: Tenure, turnEndedAt: number): boolean;
  /** The tenure has ended. */
  ended(tenure: Tenure): void;
}

/** The request that was granted. */
export interface GrantedRequest {
  readonly owner: string;
  /** Validity counts from then, because the store began to count later. */
  readonly sentAt: number;
  readonly attempts: number;
  /** How many fencing tokens it reserved. */
  readonly request: { readonly reserved: number };
}

/** The call of the caller that it was granted to. */
export interface GrantedCall {
  readonly kind: LockKindName;
  readonly options: Pick<ResolvedOptions, 'keyTimeout' | 'renew' | 'label' | 'minHold' | 'maxHold'>;
  readonly guardsBody: boolean;
  /** The share that is held of a key that several may hold. */
  readonly share: Share | undefined;
}

/** The next turns, with their first token, until when they may begin, and whether to ask for more: the store has not shown that others want the key. */
type TurnBlock = { token: number | null; left: number; endsAt: number; mayGrow: boolean };

/** How many renewals were sent after the last one that was answered, the first of them when, and the error of the last one that has failed. */
type Unanswered = Readonly<{ count: number; since: number; error: LockError | undefined }>;

/**
 * One owner id at the store, from its grant to its release or loss. The callers of this process use it one after the other, each with a fencing
 * token of the reserved block, until the limits are reached.
 */
export class Tenure extends LinkedEntry<Tenure> {
  state = HELD;
  readonly owner: string;
  readonly kind: LockKindName;
  ttl: number;
  readonly share: Share | undefined;
  validUntil: number;
  /** Until when the store keeps the key by its grant, even if this process ends. */
  readonly keptUntil: number;
  /** When the store has no lease of this owner any more, whatever became of the requests without an answer. */
  private storeEnd: number;
  private readonly mayRenew: boolean;
  /** When to renew it next, if {@link isRenewed}. */
  renewAt: number;
  unanswered: Unanswered | undefined;
  /** When the store answered last. */
  answeredAt: number;
  private readonly block: TurnBlock | undefined;
  turn: Turn;

  /** @param token the first that the request reserved. */
  constructor(
    private readonly queue: TenureQueue,
    { owner, sentAt, attempts, request: { reserved } }: GrantedRequest,
    call: GrantedCall,
    token: number | null,
    grantedAt: number,
  ) {
    super();
    const { kind, options, share } = call;
    this.owner = owner;
    this.kind = kind;
    const ttl = (this.ttl = options.keyTimeout);
    this.share = share;
    this.validUntil = this.keptUntil = sentAt + validity(ttl);
    this.storeEnd = sentAt + ttl + queue.runtime.requestTimeout;
    this.mayRenew = options.renew;
    this.renewAt = sentAt + (ttl / 3) * (share ? queue.runtime.firstRenewal : 1);
    this.answeredAt = grantedAt;
    if (reserved > 1) {
      const mayGrow = attempts === 1 && queue.driver.extend !== undefined;
      this.block = { token: token === null ? null : token + 1, left: reserved - 1, endsAt: grantedAt + queue.limits.time, mayGrow };
    }
    this.turn = new Turn(this, token, grantedAt, grantedAt + options.minHold, call);
    watchdog.add(this, grantedAt);
  }

  get key(): string {
    return this.queue.key;
  }

  get driver(): LeaseDriver {
    return this.queue.driver;
  }

  get runtime(): Lifecycle {
    return this.queue.runtime;
  }

  /** Whether the watchdog renews it, after each third of its length. */
  get isRenewed(): boolean {
    return this.mayRenew && isRenewedIn(this.state);
  }

  /** Milliseconds since the first renewal was sent that has no answer. */
  get silence(): number {
    return this.unanswered ? now() - this.unanswered.since : 0;
  }

  /** The turn of the next caller, who takes over without a request; `undefined`: it may not. */
  nextTurn(time: number, call: GrantedCall): Turn | undefined {
    const { block, ttl } = this;
    const { keyTimeout, minHold, renew } = call.options;
    if (!block || block.left === 0 || time >= block.endsAt || this.validUntil - time < validity(ttl) / 2) return undefined;
    // A minHold needs a request: the store must keep the key even if this process dies.
    if (this.state.is !== 'held' || !this.mayRenew || !renew || keyTimeout !== ttl || minHold > 0) return undefined;
    const { token } = block;
    block.left--;
    if (token !== null) block.token = token + 1;
    return (this.turn = new Turn(this, token, time, time, call));
  }

  /** It is not passed on without a request. */
  endsWithTurn(isRenewed = true, reason?: LockLostError): void {
    this.state = ending(this.state, isRenewed, reason);
  }

  /** The last lease of the turn was released. Resolves to whether the key was ours until then. @param handedOver `undefined`: to nobody. */
  endTurn(time: number, handedOver: TenureState | undefined): Promise<boolean> {
    if (this.state.is === 'lost') {
      // A renewal without an answer may have been applied, so that the store still has this owner.
      this.giveUp();
      return Promise.resolve(false);
    }
    if (!handedOver && this.queue.passOn(this, time)) return Promise.resolve(true);
    this.stop(handedOver);
    const released = this.release(time);
    this.queue.ended(this);
    return released;
  }

  private async release(time: number): Promise<boolean> {
    this.runtime.begins('cleanUp');
    try {
      const reply = await this.sendRelease(time);
      if (reply === 'lost') this.lose('the release found that it belonged to somebody else or to nobody', 'taken');
      else this.turn.emitReleased();
    } catch (cause) {
      // The answer to a repeated release is not conclusive, because an earlier one may have been applied.
      this.turn.emitReleased();
      this.giveUp(this.runtime.unknown('release', this, cause));
    } finally {
      this.runtime.ends('cleanUp');
    }
    return this.state.is === 'released';
  }

  /** Ends the renewals. By default the key is released, or given up by the next caller's request. */
  stop(state: TenureState = { is: 'released' }): void {
    this.state = state;
    watchdog.remove(this);
  }

  /**
   * Asks the store for a whole new `ttl`.
   *
   * @param isLasting whether that is the length from now on.
   * @param outlives as in the request.
   * @throws {LockLostError | StoreError}
   */
  async renew(ttl = this.ttl, isLasting = false, outlives = false): Promise<void> {
    if (now() >= this.validUntil) this.expire();
    const { key, owner, state } = this;
    if (state.is === 'lost') throw state.error;
    if (state.is === 'ending' && !state.isRenewed)
      throw new LockLostError(`The lease of "${key}" is renewed no more: maxHold is over.`, { key });
    const sentAt = this.asks(now(), ttl);
    try {
      const reply = (await this.driver.renew([{ key, owner, ttl, outlives }])[0]) ?? 'lost';
      if (isLasting && reply === 'renewed') {
        this.ttl = ttl;
        watchdog.tickBy(sentAt + ttl / 3);
      }
      this.answered(reply, sentAt, ttl);
    } catch (cause) {
      throw this.failed(cause);
    }
    if (this.state.is === 'lost') throw this.state.error;
  }

  /** A renewal was sent. */
  asks(sentAt: number, ttl = this.ttl): number {
    const { count = 0, since = sentAt, error } = this.unanswered ?? {};
    this.unanswered = { count: count + 1, since, error };
    this.storeEnd = Math.max(this.storeEnd, sentAt + ttl + this.runtime.requestTimeout);
    return sentAt;
  }

  /** @param ttl the length that was asked for: it may have changed since. */
  answered(reply: 'renewed' | 'lost', sentAt: number, ttl: number): void {
    this.unanswered = undefined;
    this.answeredAt = now();
    if (this.state.is !== 'held' && this.state.is !== 'ending') return;
    if (reply === 'lost') return this.lose('the store says that it belongs to somebody else or to nobody', 'taken');
    // Callers may have seen its end already: a lease that is over does not come back, even if the store has renewed it.
    if (now() >= this.validUntil) return this.expire();
    this.turn.emitRenewed();
    this.validUntil = Math.max(this.validUntil, sentAt + validity(Math.min(ttl, this.ttl)));
    this.renewAt = sentAt + this.ttl / 3;
  }

  /** A renewal got no answer. */
  failed(cause: unknown): LockError {
    const error = asStoreError(cause, this.key);
    this.unanswered = { count: 0, since: now(), ...this.unanswered, error };
    return error;
  }

  /** To be called after {@link nextTurn}. Before the limits are reached, it asks for new ones, which the store refuses if others queue. */
  extendSoon(time: number): void {
    const { block } = this;
    const { limits } = this.queue;
    if (!block?.mayGrow || (block.left > limits.handOvers / 4 && block.endsAt - time > limits.time / 4)) return;
    block.mayGrow = false;
    setImmediate(() => void this.extend(block, limits));
  }

  private async extend(block: TurnBlock, { handOvers, time }: TurnLimits): Promise<void> {
    const { key, owner, driver, ttl, runtime } = this;
    const { left } = block;
    const sentAt = now();
    if (this.state.is !== 'held' || left === 0 || sentAt >= Math.min(block.endsAt, this.validUntil) || runtime.closed.aborted) return;
    this.asks(sentAt);
    try {
      const reply = await driver.extend!({ key, owner, ttl, tokens: handOvers });
      this.answered(reply === 'lost' ? 'lost' : 'renewed', sentAt, ttl);
      // The new limits count from the request.
      if (typeof reply !== 'string')
        Object.assign(block, { token: reply.token, left: block.left + handOvers - left, endsAt: sentAt + time, mayGrow: true });
    } catch (cause) {
      runtime.unknown('renew', this, this.failed(cause));
    }
  }

  expire(): void {
    this.lose(watchdog.reasonFor(this), 'expired');
  }

  lose(why: string, reason: LockEvents['lost']['reason'], revoked?: Revocation): void {
    if (this.state.is === 'lost') return;
    const { key, owner, turn, runtime } = this;
    const { label, fencingToken: token } = turn;
    const error = new LockLostError(`The lease of "${key}" was lost: ${why}.`, { key, revoked });
    this.stop({ is: 'lost', error });
    turn.abortAll(error);
    runtime.events.warn('NDL_LEASE_LOST', () => this.lossLine(why), { key, label, owner, token });
    turn.emitLost(reason, error);
    this.queue.ended(this);
  }

  /** The log line of a lost lease. The error of its holder says neither how long it was held nor what the store answered meanwhile. */
  private lossLine(why: string): string {
    const { label, grantedAt } = this.turn;
    const { count = 0, error } = this.unanswered ?? {};
    const renewals = count === 0 ? '' : `; ${count} ${count === 1 ? 'renewal' : 'renewals'} unanswered`;
    const last = renewals && error ? `, last error: ${messageOf(error)}` : '';
    return `Lost "${this.key}"${label === undefined ? '' : ` (${label})`} after ${duration(now() - grantedAt)}: ${why}${renewals}${last}`;
  }

  /** @param error of the first try. */
  private giveUp(error?: LockError): void {
    void this.runtime.giveUp('release', this, this.storeEnd, () => this.sendRelease(), error);
  }

  /** Releases it, or makes the owner of its ticket the owner. */
  private sendRelease(time = now()): Promise<'released' | 'lost'> {
    const { key, owner, driver, turn, state } = this;
    if (state.is !== 'handedOver') return driver.release({ key, owner, keepFor: Math.ceil(Math.max(0, turn.keepUntil - time)) });
    const ttl = Math.ceil(Math.max(1, state.until - time));
    return driver.adopt!({ key, owner: state.owner, from: owner, ttl, tokens: 1 }).then((reply) => (reply === 'lost' ? reply : 'released'));
  }
}
