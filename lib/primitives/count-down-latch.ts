import { inspect } from 'node:util';
import { LockConfigError } from '../core/model/errors.js';
import type { LatchDriver } from '../core/store/latch-driver.js';
import type { Latches } from '../core/latch/latches.js';
import { checkOptions, integerFrom, only } from '../core/model/check-options.js';
import { ACQUIRE_CHECKS, resolveOptions, type AcquireOptions, type ResolvedOptions } from '../core/model/options.js';
import { patienceOf } from '../core/waiting/backoff.js';
import type { CallSettings } from '../core/latch/latch-request.js';

export interface CountDownLatchOptions {
  /**
   * Milliseconds, from 1, for which the latch is known after each `trySetCount` and `countDown`; it never becomes known for less than it was.
   * Counted down to 0 it is known as done for as long. Default one hour.
   */
  timeToLive?: number;
}

/** How long to wait, and what calls it off; as for a lock. Default: what the {@link Locks} say. */
export type LatchCallOptions = Pick<AcquireOptions, 'retryCount' | 'retryInterval' | 'waitTimeout' | 'signal'>;

const CALL_CHECKS = only(ACQUIRE_CHECKS, 'retryCount', 'retryInterval', 'waitTimeout', 'signal');
const LATCH_CHECKS = { timeToLive: integerFrom(1) };
const HOUR = 3_600_000;

/**
 * Lets some wait until others have done so many things, in all processes that share the store. It can be set again once it is counted down.
 * After Java's `CountDownLatch`, and Redisson's `RCountDownLatch`.
 *
 * Where the store does not answer, each call asks again until its patience ends; a change is made once, however often it is asked for.
 */
export class CountDownLatch {
  private readonly timeToLive: number;

  constructor(
    private readonly latches: Latches,
    private readonly driver: LatchDriver,
    /** The key as the store knows it, namespace included. */
    readonly key: string,
    private readonly defaults: ResolvedOptions,
    options: CountDownLatchOptions,
  ) {
    checkOptions(options, `Latch "${key}"`, LATCH_CHECKS);
    this.timeToLive = options.timeToLive ?? HOUR;
  }

  /**
   * Sets how often the latch is to be counted down, if there is none or it is counted down already. With 0 it is done at once.
   *
   * @param count a whole number from 0.
   * @returns whether it was set. `false`: there is a latch that is not counted down yet, which stays as it is.
   * @throws {StoreError} when patience ends in an outage, or at once where no retry helps. It may have been set then.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed. It may have been set then.
   * @throws {LockConfigError} when the count or an option is wrong, or the key is another kind of lock.
   */
  async trySetCount(count: number, options?: LatchCallOptions): Promise<boolean> {
    const { key, driver, timeToLive: ttl } = this;
    const settings = this.settings(options);
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new LockConfigError(`Latch "${key}": the count must be a whole number of at least 0, not ${inspect(count)}.`, { key });
    }
    return this.latches.change(key, settings, ttl, (operation) => driver.trySetCount({ key, ttl, count, operation }));
  }

  /**
   * Counts down by one; at 0 all who wait go on.
   *
   * @returns the count that is left; 0 too where there is no latch.
   * @throws {StoreError} when patience ends in an outage, or at once where no retry helps. It may have counted then.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed. It may have counted then.
   * @throws {LockConfigError} when an option is wrong, or the key is another kind of lock.
   */
  async countDown(options?: LatchCallOptions): Promise<number> {
    const { key, driver, timeToLive: ttl } = this;
    const settings = this.settings(options);
    return this.latches.change(key, settings, ttl, (operation) => driver.countDown({ key, ttl, operation }));
  }

  /**
   * The count that is left; 0 where the latch is counted down, or there is none.
   *
   * @throws as {@link countDown}.
   */
  async getCount(options?: LatchCallOptions): Promise<number> {
    const { key, driver } = this;
    const look = () => driver.look({ key, owner: '', queue: false });
    return (await this.latches.ask(key, this.settings(options), look))?.count ?? 0;
  }

  /**
   * Waits until the latch is counted down. Resolves at once where it is already, or where there is none.
   *
   * @throws {LockTimeoutError} when patience ends before.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed.
   * @throws {LockLostError} when the latch expires before it is counted down, or the store loses it.
   * @throws {StoreError} when patience ends in an outage, or at once where no retry helps.
   * @throws {LockConfigError} when an option is wrong, or the key is another kind of lock.
   */
  async await(options?: LatchCallOptions): Promise<void> {
    return this.latches.await(this.driver, this.key, this.settings(options));
  }

  private settings(options: LatchCallOptions | undefined): CallSettings {
    checkOptions(options, `Latch "${this.key}"`, CALL_CHECKS);
    const resolved = resolveOptions(this.defaults, options);
    const { retryInterval, signal } = resolved;
    return { patience: patienceOf(resolved), retryInterval, signal };
  }
}
