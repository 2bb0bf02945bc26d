import type { LockLostError } from '../model/errors.js';
import type { LockEvent, LockEvents } from '../model/events.js';
import { exactNow, now, validity } from '../util/clock.js';
import { added, removed } from '../util/short-list.js';
import { HeldLease } from './held-lease.js';
import type { Tenure } from './tenure.js';
import { watchdog } from './watchdog.js';

const NONE: readonly HeldLease[] = [];

/**
 * One local caller's part of a tenure, and the lease that it got. It ends with the last of its leases: this one, and one for each re-entrant call. The
 * `maxHold` of this one ends all.
 */
export class Turn extends HeldLease {
  /** Whether its own lease is one of them: during the callbacks of a release, too. */
  private isOwnOpen = true;
  /** Leases of re-entrant calls. */
  private others = NONE;
  /** Why the key is no longer ours. */
  keyLoss: LockLostError | undefined;
  private isEnded = false;
  /** Why its holder was asked to end, or must end. Leases that are added now abort at once. */
  end: LockLostError | undefined;
  private isLimited = false;
  /** Whether its key was released or handed over, as far as is known. */
  isReleaseEmitted = false;

  /** @param keepUntil end of the `minHold`, on the monotonic clock: a release before that does not free the key. */
  constructor(
    readonly tenure: Tenure,
    readonly token: number | null,
    readonly grantedAt: number,
    public keepUntil: number,
    readonly label: string | undefined,
    guardsBody: boolean,
    maxHold: number | undefined,
  ) {
    super(undefined, tenure, guardsBody, maxHold);
  }

  /** Leases that are not released: a copy, because some may be released while they are aborted. */
  get leases(): readonly HeldLease[] {
    return this.isOwnOpen ? [this, ...this.others] : [...this.others];
  }

  /** Its fields in events. */
  get event(): LockEvent & { readonly owner: string } {
    const { key, kind, owner } = this.tenure;
    return { key, kind, label: this.label, owner };
  }

  /** Milliseconds for which the key is ours for sure. */
  validFor(time = now()): number {
    return this.isEnded || this.keyLoss ? 0 : Math.max(0, this.tenure.validUntil - time);
  }

  add(lease: HeldLease): void {
    this.others = added(this.others, lease);
    if (this.end) lease.abort(this.end);
  }

  /** One lease has been released. Resolves to whether the key was ours until then. */
  remove(lease: HeldLease): Promise<boolean> {
    const time = exactNow();
    if (lease === this) this.isOwnOpen = false;
    else this.others = removed(this.others, lease);
    if (this.validFor(time) === 0) this.tenure.expire();
    watchdog.noticeStall(this.tenure, time);
    if (!this.isOwnOpen && this.others.length === 0) {
      this.isEnded = true;
      return this.tenure.endTurn(time);
    }
    this.stopIfAllAreOver();
    return Promise.resolve(!this.keyLoss);
  }

  /** Makes the store keep the key for this many milliseconds, even if this process dies. */
  async cover(minHold: number): Promise<void> {
    const { tenure } = this;
    const end = now() + minHold;
    if (minHold > 0 && end > this.keepUntil && end > tenure.keptUntil) await tenure.renew(Math.max(tenure.ttl, minHold), false, true);
  }

  lost(reason: LockLostError): void {
    this.keyLoss = reason;
    for (const lease of this.leases) lease.abort(reason);
  }

  /** The `maxHold` of a lease is over. */
  reachedLimit(reason: LockLostError, lease: HeldLease): void {
    if (lease === this) {
      this.isLimited = true;
      this.abortAll(reason);
    }
    this.stopIfAllAreOver();
  }

  /** Its holder is asked to end. The lease is renewed meanwhile, so that no other caller gets the key before. */
  askToEnd(reason: LockLostError): void {
    this.tenure.endsWithTurn = true;
    this.abortAll(reason);
  }

  /** Emits how it ended, once. Returns whether a listener was called. */
  emitReleased(): boolean {
    const { runtime, handedOver } = this.tenure;
    const name = handedOver ? 'handedOver' : 'released';
    if (this.isReleaseEmitted) return false;
    this.isReleaseEmitted = true;
    if (!runtime.events.isHeard(name)) return false;
    const { event, fencingToken, grantedAt, isLimited } = this;
    // No spread: it costs more than the rest of a hold on Node 20 (`npm run bench -- telemetry`).
    runtime.events.emit(name, Object.assign(event, { fencingToken, held: now() - grantedAt, limited: isLimited }));
    return true;
  }

  emitRenewed(): void {
    const { runtime, validUntil, ttl } = this.tenure;
    if (!runtime.events.isHeard('renewed')) return;
    runtime.events.emit('renewed', { ...this.event, margin: (validUntil - now()) / validity(ttl) });
  }

  emitLost(reason: LockEvents['lost']['reason'], error: LockLostError): void {
    const { events } = this.tenure.runtime;
    if (!events.isHeard('lost')) return;
    events.emit('lost', {
      ...this.event,
      held: now() - this.grantedAt,
      reason,
      limited: this.isLimited,
      error,
      afterRelease: this.isReleaseEmitted,
    });
  }

  private abortAll(reason: LockLostError): void {
    this.end ??= reason;
    for (const lease of this.leases) lease.abort(reason);
  }

  private stopIfAllAreOver(): void {
    if (this.isLimited || this.leases.every(({ isOver }) => isOver)) this.tenure.renewAt = Infinity;
  }
}
