import type { CallSettings, LatchDriverCalls } from './latch-driver-calls.js';
import { configError } from '../core/model/errors.js';
import { checkOptions, integerFrom, only, shown } from '../core/model/check-options.js';
import { ACQUIRE_CHECKS, resolveOptions, type AcquireOptions, type ResolvedOptions } from '../core/model/options.js';
import { HOUR } from '../core/util/clock.js';
import { patienceOf } from '../core/waiting/caller.js';

/** Options of {@link CountDownLatch}. */
export interface CountDownLatchOptions {
  /**
   * Milliseconds, from 1, for which the store keeps the latch after each `trySetCount` and `countDown`; they never move its end earlier.
   * A latch that is counted down stays known as done for as long. Default one hour.
   */
  timeToLive?: number;
}

/** How long to wait, and what cancels it; as for a lock. Default: the defaults of the {@link Locks}. */
export type LatchCallOptions = Pick<AcquireOptions, 'retryCount' | 'retryInterval' | 'waitTimeout' | 'signal'>;

const CALL_CHECKS = only(ACQUIRE_CHECKS, 'retryCount', 'retryInterval', 'waitTimeout', 'signal');
const COUNT = integerFrom(0);
const LATCH_CHECKS = { timeToLive: integerFrom(1) };

/**
 * Callers wait until something has been done a number of times, in any process that shares the store. It can be set again once it is counted down.
 * After Java's `CountDownLatch`, and Redisson's `RCountDownLatch`.
 *
 * While the store does not answer, each call asks again until its wait timeout ends. A change is made once, however often it is sent.
 */
export class CountDownLatch {
  private readonly timeToLive: number;

  /** @internal */
  constructor(
    private readonly calls: LatchDriverCalls,
    /** The key as the store knows it, namespace included. */
    readonly key: string,
    private readonly defaults: ResolvedOptions,
    options: CountDownLatchOptions,
  ) {
    checkOptions(options, `Latch "${key}"`, LATCH_CHECKS);
    this.timeToLive = options.timeToLive ?? HOUR;
  }

  /**
   * Sets the count if there is no latch, or it is counted down already. With 0 the latch is done at once.
   *
   * @param count a whole number from 0.
   * @returns whether the count was set. `false`: there is a latch that is not counted down yet. It is not changed.
   * @throws {StoreError} when the wait timeout ends in an outage, or at once if no retry helps. The count may have been set.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed. The count may have been set.
   * @throws {LockConfigError} when the count or an option is wrong, or the key is another kind of lock.
   */
  async trySetCount(count: number, options?: LatchCallOptions): Promise<boolean> {
    const { key, calls, timeToLive: ttl } = this;
    const settings = this.settings(options);
    const expected = COUNT(count);
    if (expected !== undefined)
      throw configError('OPTION', `Latch "${key}": the count must be ${expected}, not ${shown(count, expected)}.`, { key });
    return calls.change(key, settings, ttl, (change) => calls.driver.trySetCount({ ...change, count }));
  }

  /**
   * Counts down by one. At 0 all waiters go on.
   *
   * @returns the count that is left; also 0 if there is no latch.
   * @throws {StoreError} when the wait timeout ends in an outage, or at once if no retry helps. It may have counted.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed. It may have counted.
   * @throws {LockConfigError} when an option is wrong, or the key is another kind of lock.
   */
  async countDown(options?: LatchCallOptions): Promise<number> {
    const { key, calls, timeToLive: ttl } = this;
    return calls.change(key, this.settings(options), ttl, (change) => calls.driver.countDown(change));
  }

  /**
   * The count that is left; 0 if the latch is counted down, or there is none.
   *
   * @throws as {@link countDown}.
   */
  async getCount(options?: LatchCallOptions): Promise<number> {
    const { key, calls } = this;
    const latch = await calls.ask(key, this.settings(options), () => calls.driver.look({ key, owner: '', queue: false }));
    return latch?.count ?? 0;
  }

  /**
   * Waits until the latch is counted down. Resolves at once if it is already, or if there is none.
   *
   * @throws {LockTimeoutError} when the wait timeout ends before.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed.
   * @throws {LockLostError} when the latch expires before it is counted down, or the store loses it.
   * @throws {StoreError} when the wait timeout ends in an outage, or at once if no retry helps.
   * @throws {LockConfigError} when an option is wrong, or the key is another kind of lock.
   */
  async await(options?: LatchCallOptions): Promise<void> {
    return this.calls.wait(this.key, this.settings(options));
  }

  private settings(options: LatchCallOptions | undefined): CallSettings {
    checkOptions(options, `Latch "${this.key}"`, CALL_CHECKS);
    const resolved = resolveOptions(this.defaults, options);
    const { retryInterval, signal } = resolved;
    return { patience: patienceOf(resolved), retryInterval, signal };
  }
}
