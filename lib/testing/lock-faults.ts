import type { KeyPattern } from './key-pattern.js';
import { StoreFaults } from './store-faults.js';

/** The requests that faults can name. An `extend` counts as `renew`, an `adopt` as `acquire`. */
export type FaultyRequest = 'acquire' | 'renew' | 'release';

/**
 * The faults of a store: `faultyStore(store, faults)`, or `module.get(LockProbe).faults`. Times are milliseconds. What lasts, lasts until
 * {@link clear}.
 */
export interface LockFaults {
  /**
   * Takes the keys away from their holders, for another owner that does not release them: as if the lease had run out unnoticed. The signals of the
   * leases abort now, `assertHeld()` throws, and a call rejects with a `LockLostError` when its body is done.
   *
   * @param key `'*'`: whatever is held.
   * @throws {Error} if nobody holds such a key through the store.
   */
  lose(key?: KeyPattern): Promise<void>;

  /**
   * Every request fails without being made, from now on. Callers get a `StoreError` when their wait timeout is over; leases end if it lasts longer
   * than they do.
   *
   * @param until milliseconds, or a promise. Default: until {@link clear}.
   */
  outage(until?: number | PromiseLike<unknown>): void;

  /**
   * The next request of this kind fails for good, as without permission: an acquire rejects at once with a `StoreError`. Resolves when it has.
   *
   * @param error what the store rejects with. Default: a final `StoreError`.
   */
  refuse(on: FaultyRequest, error?: unknown): Promise<void>;

  /**
   * The next requests of this kind are made, but their replies are lost. Code under test should not notice. Resolves when the last of them was lost.
   *
   * @param times how many.
   */
  dropReply(on: FaultyRequest, times?: number): Promise<void>;

  /** Replies are so many milliseconds late from now on; 0: no more. One that is later than the store's `requestTimeout` is lost. */
  slow(ms: number): void;

  /** From now on the key is taken for every caller: they get a `LockTimeoutError` when their wait timeout is over. */
  timeOut(key: KeyPattern): void;

  /** The event loop stands still. Leases that are over by then are lost; `lag` is emitted if that was more than a third of a lease. */
  stall(ms: number): Promise<void>;

  /** The app closes: waiters reject with a `LockAbortedError`, bodies are drained. Resolves when all locks of the store are closed. */
  shutDown(): Promise<void>;

  /** Ends what lasts, and forgets what has not happened yet. */
  clear(): void;
}

/** Makes faults for one or more stores: `new LockFaults()`. */
export const LockFaults: new () => LockFaults = StoreFaults;
