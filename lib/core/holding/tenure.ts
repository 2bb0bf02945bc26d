import { now, validity } from '../util/clock.js';
import type { LeaseDriver, Share } from '../store/lease-driver.js';
import { asStoreError, LockLostError } from '../model/errors.js';
import { LinkedEntry } from '../util/linked-list.js';
import type { HeldLease, Lifecycle, OpenLease } from './lifecycle.js';
import { watchdog, type Renewable } from './watchdog.js';

export interface TenureOptions {
  readonly key: string;
  readonly owner: string;
  readonly driver: LeaseDriver;
  /** Lease length, milliseconds. */
  readonly ttl: number;
  /** Milliseconds from the grant for which the key stays taken whatever happens. */
  readonly minHold: number;
  readonly fencingToken: number | null;
  /** What is held of a key that several may hold. */
  readonly share?: Share;
  /** When the request that was granted was sent: validity counts from there, since the store began to count after that. */
  readonly sentAt: number;
  /** When the one who holds it from now on got it. */
  readonly grantedAt: number;
}

/** Those who wait for the tenure's end in this process. */
export interface Line {
  /** Passes the key on at the end of the tenure, which is at that time; `false`: nobody does, it goes back to the store. */
  passOn(tenure: Tenure, time: number): boolean;
  /** The tenure is over: it is lost, or its release has been sent. */
  left(tenure: Tenure): void;
}

/**
 * One owner's time at the store, from its grant to its release. The leases that share it (re-entrant ones) are counted; the last one that is
 * released gives the key back.
 */
export class Tenure extends LinkedEntry<Renewable> implements Renewable {
  readonly key: string;
  readonly owner: string;
  readonly driver: LeaseDriver;
  readonly ttl: number;
  readonly fencingToken: number | null;
  readonly share: Share | undefined;
  validUntil: number;
  renewAt: number;
  /** Why the key is no longer ours, once it is not. */
  loss: LockLostError | undefined;
  /** Who holds the key by this owner id now: shared by all who ever do, so that none of them keeps those after it in memory. */
  succession: { current: Tenure };
  /** When the last request was sent by which the store knew this. */
  sentAt: number;
  /** On the monotonic clock: a release before does not free the key. The store is told by {@link cover}. */
  keepUntil: number;
  readonly grantedAt: number;
  private limit: LockLostError | undefined;
  private isReleased = false;
  private isTold = false;
  private held: readonly HeldLease[] = [];

  constructor(
    readonly runtime: Lifecycle,
    private readonly line: Line,
    options: TenureOptions,
    predecessor?: Tenure,
  ) {
    super();
    ({ key: this.key, owner: this.owner, driver: this.driver, ttl: this.ttl, sentAt: this.sentAt } = options);
    ({ fencingToken: this.fencingToken, share: this.share, grantedAt: this.grantedAt } = options);
    this.validUntil = this.sentAt + validity(this.ttl);
    this.renewAt = predecessor ? predecessor.renewAt : this.sentAt + this.ttl / 3;
    this.keepUntil = this.grantedAt + options.minHold;
    this.succession = predecessor?.succession ?? { current: this };
    this.succession.current = this;
    watchdog.add(this, predecessor);
  }

  get isRenewed(): boolean {
    return this.renewAt < Infinity;
  }

  /** The next holder's part of the same lease at the store. */
  handOver(fencingToken: number | null, grantedAt: number): Tenure {
    const { runtime, line, key, owner, driver, ttl, sentAt } = this;
    return new Tenure(runtime, line, { key, owner, driver, ttl, minHold: 0, fencingToken, sentAt, grantedAt }, this);
  }

  /** Milliseconds for which the key is surely still ours. */
  remaining(time = now()): number {
    if (this.isReleased || this.loss) return 0;
    return Math.max(0, this.validUntil - time);
  }

  add(lease: OpenLease): HeldLease {
    const held = this.runtime.opened(lease);
    this.held = this.held.length === 0 ? [held] : [...this.held, held];
    if (this.limit) lease.abort(this.limit);
    return held;
  }

  /** Ends one lease's part; true if the key was ours until then. */
  remove(held: HeldLease): Promise<boolean> {
    const time = now();
    this.held = this.held.length === 1 ? [] : this.held.filter((other) => other !== held);
    if (this.remaining(time) === 0) this.expire();
    if (this.held.length === 0) return this.release(held, time);
    this.stopIfAllAreOver();
    this.runtime.ended(held);
    return Promise.resolve(!this.loss);
  }

  /** Asks the store for a whole `ttl` more. */
  async renew(ttl = this.ttl): Promise<void> {
    if (this.remaining() === 0) this.expire();
    if (this.loss) throw this.loss;
    if (!this.isRenewed) throw new LockLostError(`The lease of "${this.key}" is renewed no more: maxHold is over.`, { key: this.key });
    const sentAt = now();
    let reply: 'renewed' | 'lost' | undefined;
    try {
      reply = await this.driver.renew([{ key: this.key, owner: this.owner, ttl }])[0];
    } catch (cause) {
      throw asStoreError(cause, this.key);
    }
    this.settleRenewal(reply ?? 'lost', sentAt);
    if (this.loss) throw this.loss as LockLostError;
  }

  /** Makes sure that the store keeps the key for so long. */
  async cover(minHold: number): Promise<void> {
    if (now() + minHold > this.keepUntil && minHold > this.remaining()) await this.renew(Math.max(this.ttl, minHold));
  }

  settleRenewal(reply: 'renewed' | 'lost', sentAt: number): void {
    if (this.succession.current !== this) return this.succession.current.settleRenewal(reply, sentAt);
    if (this.isReleased || this.loss) return;
    if (reply === 'lost') return this.lose('the store says that it belongs to somebody else or to nobody');
    this.sentAt = Math.max(this.sentAt, sentAt);
    this.validUntil = this.sentAt + validity(this.ttl);
    if (now() >= this.validUntil) return this.expire();
    if (this.isRenewed) this.renewAt = sentAt + this.ttl / 3;
  }

  /** A lease's `maxHold` is over. If that ends them all, they are told and the key runs out. */
  reachedLimit(reason: LockLostError, endsAll: boolean): void {
    this.limit ??= endsAll ? reason : undefined;
    if (endsAll) for (const { lease } of this.held) lease.abort(reason);
    this.stopIfAllAreOver();
  }

  private stopIfAllAreOver(): void {
    if (this.limit || (this.held.length > 0 && this.held.every(({ lease }) => lease.isOver))) this.renewAt = Infinity;
  }

  expire(): void {
    this.lose(`it was not renewed within its ${this.ttl} ms`);
  }

  noticeLag(lag: number): void {
    const tooLong = `The event loop stood still for ${Math.round(lag)} ms, more than a third of the keyTimeout of ${this.ttl} ms of "${this.key}"`;
    this.runtime.events.warn(`${tooLong}: leases may be lost. Use a longer keyTimeout, or move the work that blocks off this thread.`);
    this.runtime.events.emit('lag', { lag, keyTimeout: this.ttl, key: this.key });
  }

  noticeUnknown(operation: 'renew' | 'release', cause: unknown): void {
    this.runtime.unknown(operation, this, cause);
  }

  lose(why: string): void {
    if (this.loss) return;
    const { events } = this.runtime;
    watchdog.remove(this);
    const error = new LockLostError(`The lease of "${this.key}" was lost: ${why}.`, { key: this.key });
    this.loss = error;
    for (const { lease } of this.held) lease.abort(error);
    events.warn(error.message);
    events.emit('lost', { key: this.key, owner: this.owner, error });
    this.line.left(this);
  }

  private release(last: HeldLease, time: number): Promise<boolean> {
    this.isReleased = true;
    if (this.loss) {
      // Nobody waits for it: a renewal without an answer may have kept the key ours at the store.
      this.runtime.inBackground(this.tryRelease());
      this.runtime.ended(last);
      return Promise.resolve(false);
    }
    const isPassedOn = this.line.passOn(this, time);
    watchdog.remove(this);
    if (isPassedOn) {
      this.runtime.ended(last);
      return Promise.resolve(true);
    }
    const releasing = this.tryRelease();
    this.line.left(this);
    return releasing.then(
      (reply) => {
        if (reply === 'lost') this.lose('the release found that it belonged to somebody else or to nobody');
        else this.tellReleased();
        this.runtime.ended(last);
        return reply === 'released';
      },
      (cause: unknown) => {
        this.releaseLater(cause);
        this.runtime.ended(last);
        return true;
      },
    );
  }

  /** Whether somebody was told. */
  tellReleased(): boolean {
    const { events } = this.runtime;
    if (this.isTold || !events.isHeard('released')) return false;
    this.isTold = true;
    events.emit('released', { key: this.key, owner: this.owner, held: now() - this.grantedAt });
    return true;
  }

  private tryRelease(): Promise<'released' | 'lost'> {
    const { key, owner, keepUntil } = this;
    try {
      return this.driver.release({ key, owner, keepFor: Math.ceil(Math.max(0, keepUntil - now())) });
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  /** What a repeated release finds says nothing: an earlier one may have been applied. */
  private releaseLater(cause: unknown): void {
    if (!this.runtime.unknown('release', this, cause).transient) return;
    void this.runtime.giveUp('release', this, now() + this.ttl, () => this.tryRelease());
  }
}
