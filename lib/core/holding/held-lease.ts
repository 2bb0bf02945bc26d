import { AsyncResource } from 'node:async_hooks';
import { checkOptions, integerFrom, only } from '../model/check-options.js';
import { abortedBy, configError, LockLostError, type LockAbortedError } from '../model/errors.js';
import type { Lease } from '../model/lease.js';
import { ACQUIRE_CHECKS, type ResolvedOptions } from '../model/options.js';
import { notHandedOver, writeTicket } from '../model/ticket.js';
import { untilAborted } from '../util/abort.js';
import { after, exactNow, now } from '../util/clock.js';
import type { TenureState } from './tenure-state.js';
import type { Turn } from './turn.js';

type HoldTimes = Pick<ResolvedOptions, 'minHold' | 'maxHold' | 'signal'>;
type ReentryOptions = HoldTimes & Partial<Pick<ResolvedOptions, 'keyTimeout' | 'renew'>>;

const RENEW_CHECKS = only(ACQUIRE_CHECKS, 'keyTimeout');
/** Operators see its end as a date, which ends in the year 275760. */
const HAND_OVER_CHECKS = { within: integerFrom(10, 10 ** 15) };

/** A lease of a local holder: that of a {@link Turn}, or one more of a re-entrant call. Whether the key is ours is a matter of the {@link Tenure}. */
export class HeldLease implements Lease {
  /** Whether its `maxHold` is over. */
  isOver = false;
  /** The whole that it belongs to, without which it cannot be handed over. */
  partOf: 'multi-lock' | 'leader election' | undefined;
  private isReleased = false;
  private answer: Promise<boolean> | undefined;
  /**
   * The controller of the signal, and the async context in which that was first read: its listeners run there, not in the call that finds the loss.
   * `AsyncLocalStorage.snapshot()` does the same, but takes 2,700 bytes on Node 20, this one 70.
   */
  private source: { readonly controller: AbortController; readonly context: AsyncResource } | undefined;
  private abortReason: unknown;
  private limit: NodeJS.Timeout | undefined;
  private released: (() => void) | undefined;

  /**
   * @param guardsBody whether a body runs under the lease, for which `close()` waits.
   * @param limitedBy names the option behind `maxHold`, for the message.
   */
  constructor(
    readonly turn: Turn,
    readonly guardsBody: boolean,
    maxHold: number | undefined,
    private readonly limitedBy = 'maxHold',
  ) {
    turn.add(this);
    if (guardsBody) turn.tenure.runtime.begins('body');
    if (maxHold !== undefined) this.limitTo(now() + maxHold);
  }

  get key(): string {
    return this.turn.tenure.key;
  }

  get owner(): string {
    return this.turn.tenure.owner;
  }

  get fencingToken(): number | null {
    return this.turn.fencingToken;
  }

  get signal(): AbortSignal {
    if (!this.source) {
      const context = new AsyncResource('LeaseSignal', { requireManualDestroy: true });
      this.source = { controller: new AbortController(), context };
      if (this.abortReason !== undefined) this.abort();
    }
    return this.source.controller.signal;
  }

  remaining(): number {
    return this.isReleased || this.turn.keyLoss ? 0 : Math.max(0, this.turn.tenure.validUntil - exactNow());
  }

  assertHeld(): void {
    if (this.remaining() > 0) return;
    if (!this.isReleased) this.turn.tenure.expire();
    const end = this.isHandedOver ? 'handed over to another process' : 'released';
    throw this.turn.keyLoss ?? new LockLostError(`The lease of "${this.key}" has been ${end}.`, { key: this.key });
  }

  async renew(keyTimeout?: number): Promise<void> {
    checkOptions({ keyTimeout }, 'Lease.renew', RENEW_CHECKS);
    this.assertHeld();
    await this.turn.tenure.renew(keyTimeout, keyTimeout !== undefined);
  }

  async handOver(options: { within: number }): Promise<string> {
    checkOptions(options, 'Lease.handOver', HAND_OVER_CHECKS, 'within');
    this.assertMayHandOver();
    const { key, owner, turn } = this;
    // The store keeps it for the minHold, too.
    await turn.tenure.renew(Math.max(options.within, Math.ceil(turn.keepUntil - now())), false, true);
    // Meanwhile it may have been released, asked back, or taken by a nested call.
    this.assertMayHandOver();
    const time = now();
    const keepFor = Math.ceil(Math.max(0, turn.keepUntil - time));
    const { text, from } = writeTicket({ key, owner, keepFor });
    await this.releaseTo({ is: 'handedOver', owner: from, until: time + Math.max(options.within, keepFor) });
    if (turn.keyLoss) throw turn.keyLoss;
    return text;
  }

  private assertMayHandOver(): void {
    this.assertHeld();
    const { key, partOf, turn } = this;
    if (turn.end) throw turn.end;
    const { kind, driver } = turn.tenure;
    if (partOf || kind !== 'mutex') throw notHandedOver(key, partOf ? `it is a part of a ${partOf}` : `it is a ${kind} lock`);
    if (!driver.adopt) throw notHandedOver(key, 'the store does not offer that');
    if (turn.leases.length > 1) throw configError('CALL', `"${key}" cannot be handed over: a nested call holds it, too.`, { key });
  }

  release(): Promise<boolean> {
    return this.releaseTo(undefined);
  }

  private releaseTo(handedOver: TenureState | undefined): Promise<boolean> {
    // A listener that is called during the release may release again, before `answer` is set.
    if (this.isReleased) return this.answer ?? Promise.resolve().then(() => this.answer as Promise<boolean>);
    this.isReleased = true;
    clearTimeout(this.limit);
    let fault: { readonly error: unknown } | undefined;
    try {
      this.released?.();
    } catch (error) {
      fault = { error };
    }
    if (this.guardsBody) this.turn.tenure.runtime.ends('body');
    // With a fault it rejects, so nobody gets the ticket.
    const answer = this.turn.remove(this, fault ? undefined : handedOver);
    return (this.answer = fault ? answer.then(() => Promise.reject(fault.error as Error)) : answer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** The callback runs when the lease is released, before the store is asked. If it throws, the key is released all the same, and `release` rejects. */
  onRelease(callback: () => void): void {
    const { released } = this;
    this.released = released ? () => (released(), callback()) : callback;
  }

  /** Why it is no longer held. */
  get loss(): unknown {
    // A lease that was aborted by other means than its maxHold can be lost as well.
    return this.abortReason instanceof LockLostError ? this.abortReason : (this.turn.keyLoss ?? this.abortReason);
  }

  get isHandedOver(): boolean {
    return this.turn.tenure.state.is === 'handedOver';
  }

  /** `minHold`, which is covered, and `maxHold` count from this time. */
  begin({ minHold, maxHold }: HoldTimes, time: number): void {
    this.turn.keepUntil = Math.max(this.turn.keepUntil, time + minHold);
    if (maxHold !== undefined) this.limitTo(time + maxHold);
  }

  /** Releases the lease while its holder still works: for the holder it is lost. */
  async revoke(reason: LockLostError): Promise<void> {
    if (this.isReleased) return;
    this.abort(reason);
    await (this.answer = this.release().then(() => false));
  }

  /** A lease of the same turn, for a re-entrant call. */
  async reenter(guardsBody: boolean, { minHold, maxHold, signal, renew, keyTimeout }: ReentryOptions): Promise<HeldLease> {
    this.assertHeld();
    // The holder keeps its lease, which is still renewed.
    const isFixed = renew === false && keyTimeout !== undefined && keyTimeout < (maxHold ?? Infinity);
    const [limit, limitedBy] = isFixed ? [keyTimeout, 'its keyTimeout'] : [maxHold];
    const lease = new HeldLease(this.turn, guardsBody, limit, limitedBy);
    const start = now();
    try {
      await untilAborted(this.turn.cover(minHold), signal);
      if (signal?.aborted) throw abortedBy(signal, this.key);
      lease.assertHeld();
      lease.begin({ minHold }, start);
    } catch (error) {
      await lease.release();
      throw error;
    }
    return lease;
  }

  abort(reason?: LockLostError | LockAbortedError): void {
    this.abortReason ??= reason;
    this.source?.context.runInAsyncScope(() => this.source?.controller.abort(this.abortReason));
  }

  private limitTo(end: number): void {
    clearTimeout(this.limit);
    this.limit = after(end - now(), () => {
      if (now() < end) return this.limitTo(end);
      const reason = new LockLostError(`"${this.key}" was held for ${this.limitedBy}, and is not renewed any more.`, { key: this.key });
      this.isOver = true;
      if (this === this.turn.root) return this.turn.endBy(reason, false);
      this.abort(reason);
      this.turn.stopIfAllAreOver();
    }).unref();
  }
}
