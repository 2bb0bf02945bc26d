import { asStoreError, type LockError, LockLostError, messageOf, type Revocation } from '../model/errors.js';
import type { LockEvents, LockKindName } from '../model/events.js';
import type { ResolvedOptions } from '../model/options.js';
import type { LeaseDriver, Share } from '../store/lease-driver.js';
import { duration, now, validity } from '../util/clock.js';
import { LinkedEntry } from '../util/linked-list.js';
import type { Lifecycle } from './lifecycle.js';
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
  readonly reserved: number;
}

/** The call of the caller that it was granted to. */
export interface GrantedCall {
  readonly kind: LockKindName;
  readonly options: Pick<ResolvedOptions, 'keyTimeout' | 'renew' | 'label' | 'maxHold'>;
  readonly guardsBody: boolean;
  /** The share that is held of a key that several may hold. */
  readonly share: Share | undefined;
}

/**
 * One owner id at the store, from its grant to its release or loss. The callers of this process use it one after the other, each with a fencing
 * token of the reserved block, until the limits are reached.
 */
export class Tenure extends LinkedEntry<Tenure> {
  readonly owner: string;
  readonly kind: LockKindName;
  ttl: number;
  /** Whether the watchdog renews it. */
  private readonly isRenewed: boolean;
  readonly share: Share | undefined;
  validUntil: number;
  /** Until when the store keeps the key, even if this process ends. */
  keptUntil: number;
  /** When the store has no lease of this owner any more, whatever became of the renewals without an answer. */
  private storeEnd = 0;
  /** When to renew it next; `Infinity`: not any more, or never. */
  renewAt: number;
  turn!: Turn;
  /** Whether it ends with the current turn. */
  endsWithTurn = false;
  /** The owner that another process adopts it from, and until when, on the monotonic clock; `undefined`: it was not handed over. */
  handedOver: { readonly owner: string; readonly until: number } | undefined;
  /** The error of the last renewal; `undefined`: it succeeded. */
  outage: LockError | undefined;
  /** Renewals since the last one that was answered. */
  unansweredCount = 0;
  /** When the first renewal without an answer was sent; 0: there is none. */
  private askedAt = 0;
  /** When the store answered last. */
  answeredAt: number;
  private loss: LockLostError | undefined;
  private isReleased = false;
  private turnsLeft: number;
  private turnsEndAt: number;
  private mayExtend: boolean;

  /** @param nextToken the first token that the request reserved. */
  constructor(
    private readonly queue: TenureQueue,
    { owner, sentAt, attempts, reserved }: GrantedRequest,
    { kind, options, share }: GrantedCall,
    private nextToken: number | null,
    grantedAt: number,
  ) {
    super();
    this.owner = owner;
    this.kind = kind;
    const ttl = (this.ttl = options.keyTimeout);
    this.share = share;
    this.validUntil = this.keptUntil = sentAt + validity(ttl);
    this.isRenewed = options.renew;
    this.renewAt = sentAt + this.pace * (share ? queue.runtime.firstRenewal : 1);
    this.turnsLeft = reserved;
    this.turnsEndAt = grantedAt + queue.limits.time;
    // A first request that found the key taken has shown that others want it.
    this.mayExtend = reserved > 1 && attempts === 1 && queue.driver.extend !== undefined;
    this.answeredAt = grantedAt;
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

  /** Milliseconds since the first renewal without an answer was sent; 0: there is none. */
  get silence(): number {
    return this.askedAt === 0 ? 0 : now() - this.askedAt;
  }

  beginTurn(time: number, minHold: number, { guardsBody, options }: GrantedCall): Turn {
    const token = this.nextToken;
    this.turnsLeft--;
    if (token !== null) this.nextToken = token + 1;
    return (this.turn = new Turn(this, token, time, time + minHold, options.label, guardsBody, options.maxHold));
  }

  /** Milliseconds between two renewals; `Infinity`: the watchdog does not renew it. */
  get pace(): number {
    return this.isRenewed ? this.ttl / 3 : Infinity;
  }

  /** Whether the next caller may take over without a request. */
  mayPassOn(time: number): boolean {
    const isValid = !this.endsWithTurn && this.renewAt < Infinity && this.validUntil - time >= validity(this.ttl) / 2;
    return isValid && this.turnsLeft > 0 && time < this.turnsEndAt;
  }

  /** The last lease of the turn was released. Resolves to whether the key was ours until then. */
  endTurn(time: number): Promise<boolean> {
    if (this.loss) {
      // A renewal without an answer may have been applied, so that the store still has this owner.
      this.giveUp(Math.max(this.validUntil + this.ttl, this.storeEnd));
      return Promise.resolve(false);
    }
    if (!this.handedOver && this.queue.passOn(this, time)) return Promise.resolve(true);
    this.stop();
    this.runtime.begins('cleanUp');
    const released = this.release(time);
    this.queue.ended(this);
    return released;
  }

  private async release(time: number): Promise<boolean> {
    try {
      const reply = await this.sendRelease(time);
      if (reply === 'lost') this.lose('the release found that it belonged to somebody else or to nobody', 'taken');
      else this.turn.emitReleased();
      return reply === 'released' && !this.handedOver;
    } catch (cause) {
      // The answer to a repeated release is not conclusive, because an earlier one may have been applied.
      this.turn.emitReleased();
      this.giveUp(Math.max(now() + this.ttl, this.storeEnd), this.runtime.unknown('release', this, cause));
      return !this.handedOver;
    } finally {
      this.runtime.ends('cleanUp');
    }
  }

  /** Ends the renewals: the key is released, or given up by the next caller's request. */
  stop(): void {
    this.isReleased = true;
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
    if (this.loss) throw this.loss;
    if (this.renewAt === Infinity && this.isRenewed) {
      throw new LockLostError(`The lease of "${this.key}" is renewed no more: maxHold is over.`, { key: this.key });
    }
    const sentAt = this.asks(now());
    this.storeEnd = Math.max(this.storeEnd, sentAt + ttl + this.runtime.requestTimeout);
    try {
      const reply = await this.driver.renew([{ key: this.key, owner: this.owner, ttl, outlives }])[0];
      if (outlives && reply === 'renewed') this.keptUntil = Math.max(this.keptUntil, sentAt + validity(ttl));
      if (isLasting && reply === 'renewed') {
        this.ttl = ttl;
        watchdog.tickBy(sentAt + this.pace);
      }
      this.answered(reply ?? 'lost', sentAt, ttl);
    } catch (cause) {
      throw this.unanswered(cause);
    }
    if (this.loss) throw this.loss as LockLostError;
  }

  /** A renewal was sent. */
  asks(sentAt: number): number {
    this.unansweredCount++;
    if (this.askedAt === 0) this.askedAt = sentAt;
    return sentAt;
  }

  /** @param ttl the length that was asked for: it may have changed since. */
  answered(reply: 'renewed' | 'lost', sentAt: number, ttl: number): void {
    this.askedAt = this.unansweredCount = 0;
    this.answeredAt = now();
    if (this.isReleased || this.loss) return;
    if (reply === 'lost') return this.lose('the store says that it belongs to somebody else or to nobody', 'taken');
    // Callers may have seen its end already: a lease that is over does not come back, even if the store has renewed it.
    if (now() >= this.validUntil) return this.expire();
    this.turn.emitRenewed();
    this.outage = undefined;
    this.validUntil = Math.max(this.validUntil, sentAt + validity(Math.min(ttl, this.ttl)));
    if (this.renewAt < Infinity) this.renewAt = sentAt + this.pace;
  }

  unanswered(cause: unknown): LockError {
    this.askedAt = 0;
    return (this.outage = asStoreError(cause, this.key));
  }

  /** To be called after {@link beginTurn}. Before the limits are reached, it asks for new ones, which the store refuses if others queue. */
  extendSoon(): void {
    const { handOvers, time } = this.queue.limits;
    if (!this.mayExtend || (this.turnsLeft > handOvers / 4 && this.turnsEndAt - now() > time / 4)) return;
    this.mayExtend = false;
    setImmediate(() => void this.extend());
  }

  expire(): void {
    this.lose(watchdog.reasonFor(this), 'expired');
  }

  lose(why: string, reason: LockEvents['lost']['reason'], revoked?: Revocation): void {
    if (this.loss) return;
    const { key, turn, runtime } = this;
    watchdog.remove(this);
    const error = (this.loss = new LockLostError(`The lease of "${key}" was lost: ${why}.`, { key, revoked }));
    turn.lost(error);
    const { label, fencingToken: token } = turn;
    runtime.events.warn('NDL_LEASE_LOST', () => lossLine(this, why), { key, label, owner: this.owner, token });
    turn.emitLost(reason, error);
    this.queue.ended(this);
  }

  private async extend(): Promise<void> {
    const { key, owner, driver, ttl, turnsLeft, isReleased, loss, renewAt } = this;
    const { limits } = this.queue;
    const isOver = turnsLeft <= 0 || now() >= this.turnsEndAt || now() >= this.validUntil;
    if (isOver || isReleased || loss || renewAt === Infinity || this.runtime.closed.aborted) return;
    const sentAt = this.asks(now());
    try {
      const reply = (await driver.extend?.({ key, owner, ttl, tokens: limits.handOvers })) ?? 'wanted';
      this.answered(reply === 'lost' ? 'lost' : 'renewed', sentAt, ttl);
      if (typeof reply === 'string') return;
      // The new limits count from the request.
      this.turnsLeft += limits.handOvers - turnsLeft;
      this.turnsEndAt = sentAt + limits.time;
      this.nextToken = reply.token;
      this.mayExtend = true;
    } catch (cause) {
      this.runtime.unknown('renew', this, this.unanswered(cause));
    }
  }

  /** @param end on the monotonic clock: the store has no lease of this owner any more. @param error of the first try. */
  private giveUp(end: number, error?: LockError): void {
    void this.runtime.giveUp('release', this, end, () => this.sendRelease(), error);
  }

  /** Releases it, or makes the owner of its ticket the owner. */
  private sendRelease(time = now()): Promise<'released' | 'lost'> {
    const { key, owner, driver, turn, handedOver } = this;
    if (!handedOver || this.loss) return driver.release({ key, owner, keepFor: Math.ceil(Math.max(0, turn.keepUntil - time)) });
    const ttl = Math.ceil(Math.max(1, handedOver.until - time));
    return driver.adopt!({ key, owner: handedOver.owner, from: owner, ttl, tokens: 1 }).then((reply) =>
      reply === 'lost' ? reply : 'released',
    );
  }
}

/** The log line of a lost lease. The error of its holder says neither how long it was held nor what the store answered meanwhile. */
function lossLine({ key, turn, unansweredCount, outage }: Tenure, why: string): string {
  const { label, grantedAt } = turn;
  const line = `Lost "${key}"${label === undefined ? '' : ` (${label})`} after ${duration(now() - grantedAt)}: ${why}`;
  if (unansweredCount === 0) return line;
  const renewals = `${line}; ${unansweredCount} ${unansweredCount === 1 ? 'renewal' : 'renewals'} unanswered`;
  return outage ? `${renewals}, last error: ${messageOf(outage)}` : renewals;
}
