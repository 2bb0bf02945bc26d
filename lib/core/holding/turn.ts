import type { LockLostError } from '../model/errors.js';
import type { LockEvent, LockEvents } from '../model/events.js';
import { exactNow, now, validity } from '../util/clock.js';
import { added, removed } from '../util/short-list.js';
import { HeldLease } from './held-lease.js';
import type { GrantedCall, Tenure } from './tenure.js';
import type { TenureState } from './tenure-state.js';
import { watchdog } from './watchdog.js';

const NONE: readonly HeldLease[] = [];

/** One local caller's part of a tenure. It ends with the last of its leases. */
export class Turn {
  readonly label: string | undefined;
  /** Leases that are not released: that of its caller, and one for each re-entrant call. */
  leases = NONE;
  /** The lease of its caller, whose `maxHold` ends all. */
  readonly root: HeldLease;
  /** Whether its key was released or handed over, as far as is known. */
  private isReleaseEmitted = false;

  /** @param keepUntil end of the `minHold`, on the monotonic clock: a release before that does not free the key. */
  constructor(
    readonly tenure: Tenure,
    readonly fencingToken: number | null,
    readonly grantedAt: number,
    public keepUntil: number,
    { guardsBody, options }: GrantedCall,
  ) {
    this.label = options.label;
    this.root = new HeldLease(this, guardsBody, options.maxHold);
  }

  /** Its fields in events. */
  get event(): LockEvent & { readonly owner: string } {
    const { key, kind, owner } = this.tenure;
    return { key, kind, label: this.label, owner };
  }

  /** Why the key is no longer ours. */
  get keyLoss(): LockLostError | undefined {
    const { state, turn } = this.tenure;
    return state.is === 'lost' && turn === this ? state.error : undefined;
  }

  /** Why its holder was asked to end, or must end. */
  get end(): LockLostError | undefined {
    const { state } = this.tenure;
    return state.is === 'ending' ? state.reason : undefined;
  }

  add(lease: HeldLease): void {
    this.leases = added(this.leases, lease);
    if (this.end) lease.abort(this.end);
  }

  /** One lease has been released. Resolves to whether the key was ours until then. @param handedOver as of {@link Tenure.endTurn}. */
  remove(lease: HeldLease, handedOver?: TenureState): Promise<boolean> {
    const time = exactNow();
    const { tenure } = this;
    this.leases = removed(this.leases, lease);
    if (time >= tenure.validUntil) tenure.expire();
    watchdog.noticeStall(tenure, time);
    if (this.leases.length === 0) return tenure.endTurn(time, handedOver);
    this.stopIfAllAreOver();
    return Promise.resolve(!this.keyLoss);
  }

  /** Makes the store keep the key for this many milliseconds, even if this process dies. */
  async cover(minHold: number): Promise<void> {
    const { tenure } = this;
    const end = now() + minHold;
    if (minHold > 0 && end > this.keepUntil && end > tenure.keptUntil) await tenure.renew(Math.max(tenure.ttl, minHold), false, true);
  }

  /** Its holder is asked to end. @param isRenewed whether it is renewed meanwhile, so that no other caller gets the key before. */
  endBy(reason: LockLostError, isRenewed: boolean): void {
    this.tenure.endsWithTurn(isRenewed, reason);
    this.abortAll(reason);
  }

  abortAll(reason: LockLostError): void {
    // A copy, because some may be released while they are aborted.
    for (const lease of [...this.leases]) lease.abort(reason);
  }

  stopIfAllAreOver(): void {
    if (this.leases.every(({ isOver }) => isOver)) this.tenure.endsWithTurn(false);
  }

  /** Emits how it ended, once. Returns whether a listener was called. */
  emitReleased(): boolean {
    const { runtime, state } = this.tenure;
    const name = state.is === 'handedOver' ? 'handedOver' : 'released';
    if (this.isReleaseEmitted) return false;
    this.isReleaseEmitted = true;
    if (!runtime.events.isHeard(name)) return false;
    const { event, fencingToken, grantedAt, root } = this;
    // No spread: it costs more than the rest of a hold on Node 20 (`npm run bench -- telemetry`).
    runtime.events.emit(name, Object.assign(event, { fencingToken, held: now() - grantedAt, limited: root.isOver }));
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
    const { event, grantedAt, root, isReleaseEmitted } = this;
    events.emit('lost', { ...event, held: now() - grantedAt, reason, limited: root.isOver, error, afterRelease: isReleaseEmitted });
  }
}
