import { AsyncLocalStorage } from 'node:async_hooks';
import { untilAborted } from '../util/abort.js';
import { after, now } from '../util/clock.js';
import type { LeaseDriver, Share } from '../store/lease-driver.js';
import { abortedBy, LockLostError, type LockAbortedError } from '../model/errors.js';
import type { HeldLease, OpenLease } from './lifecycle.js';
import type { Tenure } from './tenure.js';

/**
 * One holding of one key. It is renewed until it is released, lost, or held for `maxHold`.
 *
 * It can be disposed of by `await using`.
 */
export class Lease implements OpenLease, AsyncDisposable {
  /** @internal Whether `maxHold` is over. */
  isOver = false;
  private hasEnded = false;
  private answer: Promise<boolean> | undefined;
  private controller: AbortController | undefined;
  /** Of whoever asked for the signal first: its listeners run there, and not in the call that finds the lease lost. */
  private context: (<T>(work: () => T) => T) | undefined;
  private abortReason: unknown;
  private limit: NodeJS.Timeout | undefined;
  private released: (() => void) | undefined;
  private readonly held: HeldLease;

  /** @internal Leases come from {@link Locks} and its primitives. */
  constructor(
    private readonly tenure: Tenure,
    /** Whether a body runs under this lease, as opposed to a bare one that its holder releases. */
    readonly guardsBody: boolean,
    maxHold: number | undefined,
    /** Whether its `maxHold` lets the key go, whoever else holds it still; that of a re-entrant lease does so only as the last one. */
    private readonly isFirst: boolean,
  ) {
    this.held = tenure.add(this);
    if (maxHold !== undefined) this.limitTo(now() + maxHold);
  }

  /** The key as the store knows it, namespace included. */
  get key(): string {
    return this.tenure.key;
  }

  /** The random id under which the store knows this holding. */
  get owner(): string {
    return this.tenure.owner;
  }

  /**
   * A safe integer that only grows from one holding of a key to the next; `null` where the store cannot promise that. Send it along with each
   * write, and let the resource refuse a smaller one than it has seen.
   */
  get fencingToken(): number | null {
    return this.tenure.fencingToken;
  }

  /** Aborts when the lease is lost or `maxHold` is over; its reason is a {@link LockLostError}. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      this.context = AsyncLocalStorage.snapshot();
      if (this.abortReason !== undefined) this.controller.abort(this.abortReason);
    }
    return this.controller.signal;
  }

  get isReleased(): boolean {
    return this.hasEnded;
  }

  /** Milliseconds for which the key is surely still ours; 0 when the lease is lost or released. */
  remaining(): number {
    return this.isReleased ? 0 : this.tenure.remaining();
  }

  /** @throws {LockLostError} if the lease is lost, run out or released. */
  assertHeld(): void {
    if (this.remaining() > 0) return;
    if (!this.isReleased) this.tenure.expire();
    throw this.tenure.loss ?? new LockLostError(`The lease of "${this.key}" has been released.`, { key: this.key });
  }

  /**
   * Renews now, for a whole `keyTimeout`. The watchdog does so by itself.
   *
   * @throws {LockLostError} if the lease is lost, released or over its `maxHold`.
   * @throws {StoreError} if the store gave no answer: the lease is held on for {@link remaining} ms.
   */
  async renew(): Promise<void> {
    this.assertHeld();
    await this.tenure.renew();
  }

  /**
   * Gives the key back. It never rejects: where the store gives no answer it is asked again in the background until the lease has run out.
   *
   * @returns `false` if the key was no longer ours. Repeated calls get the first answer.
   */
  release(): Promise<boolean> {
    if (!this.hasEnded) {
      this.hasEnded = true;
      if (this.limit) clearTimeout(this.limit);
      this.released?.();
      this.answer = this.tenure.remove(this.held);
    }
    // Listeners are told in the midst of it, and may ask again before there is an answer.
    return this.answer ?? Promise.resolve().then(() => this.answer as Promise<boolean>);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal Calls back when the lease is released, before the store is asked. */
  onRelease(callback: () => void): void {
    const { released } = this;
    this.released = released
      ? () => {
          released();
          callback();
        }
      : callback;
  }

  /** @internal Why it is ours no more, once it is not. */
  get loss(): unknown {
    // A lease that is over its maxHold runs out because of that; one that was asked to end by other means may be lost all the same.
    return this.abortReason instanceof LockLostError ? this.abortReason : (this.tenure.loss ?? this.abortReason);
  }

  /** @internal What it holds of a key that several may hold. */
  get share(): Share | undefined {
    return this.tenure.share;
  }

  /** @internal Makes sure that the store keeps the key for so long, whatever happens to us. */
  cover(minHold: number): Promise<void> {
    return this.tenure.cover(minHold);
  }

  /** @internal Its `minHold`, which is covered, and its `maxHold` count from that time, if it was taken without. */
  begin({ minHold, maxHold }: { minHold: number; maxHold?: number }, time: number): void {
    this.keepUntil(time + minHold);
    if (maxHold !== undefined) this.limitTo(time + maxHold);
  }

  /** @internal */
  async revoke(reason: LockLostError): Promise<void> {
    if (!this.isReleased) {
      this.abort(reason);
      const ended = this.release();
      this.answer = ended.then(() => false);
    }
    await this.answer;
  }

  /** @internal */
  isOf(driver: LeaseDriver, key: string): boolean {
    return this.tenure.driver === driver && this.tenure.key === key;
  }

  /** @internal A lease of the same tenure, for a re-entrant call. */
  async reenter(guardsBody: boolean, options: { minHold: number; maxHold?: number; signal?: AbortSignal }): Promise<Lease> {
    this.assertHeld();
    const { minHold, maxHold, signal } = options;
    const lease = new Lease(this.tenure, guardsBody, maxHold, false);
    const start = now();
    try {
      await untilAborted(this.cover(minHold), signal);
      if (signal?.aborted) throw abortedBy(signal, this.key);
      lease.assertHeld();
      lease.keepUntil(start + minHold);
    } catch (error) {
      await lease.release();
      throw error;
    }
    return lease;
  }

  /** @internal */
  abort(reason: LockLostError | LockAbortedError): void {
    this.abortReason ??= reason;
    this.context?.(() => this.controller?.abort(this.abortReason));
  }

  private keepUntil(time: number): void {
    this.tenure.keepUntil = Math.max(this.tenure.keepUntil, time);
  }

  private limitTo(end: number): void {
    this.limit = after(end - now(), () => {
      if (now() < end) return this.limitTo(end);
      const reason = new LockLostError(`"${this.key}" was held for maxHold: its lease runs out.`, { key: this.key });
      this.isOver = true;
      this.abort(reason);
      this.tenure.reachedLimit(reason, this.isFirst);
    }).unref();
  }
}
