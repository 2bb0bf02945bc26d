import { defined, instanceLike, integerFrom, oneOf, without, type Check } from './check-options.js';
import type { LockTimeoutError } from './errors.js';

/** How to take and keep a lease. All times are whole milliseconds. */
export interface AcquireOptions {
  /**
   * Lease length, from 10. The lease counts as valid for so long less 1 %, at least 2 ms, from before its request was sent. The watchdog renews it
   * for as long as it is held. Choose it well above the longest pause of the process. Default 1000.
   */
  keyTimeout?: number;
  /** Tries; 1: one try, no waiting; 0: wait until acquired. Default 3. */
  retryCount?: number;
  /** Patience is the sum of `retryCount - 1` draws from 1–2 × this, drawn once. Default 500. */
  retryInterval?: number;
  /** Patience, instead of the two above. 0: one try; `Infinity`: for ever. */
  waitTimeout?: number;
  /** The same call chain may take its own key again. Default true. */
  reentrant?: boolean;
  /** First come, first served, across processes. Default false. */
  fair?: boolean;
  /** The key stays taken at least so long after it was taken, also when the process dies. Default: not kept. */
  minHold?: number;
  /** After so long the lease's signal aborts and it is renewed no more. Default: no limit. */
  maxHold?: number;
  /** Calls the wait off: the acquire rejects at once with a {@link LockAbortedError}. */
  signal?: AbortSignal;
}

/** What an `onTimeout` function is told. `args`, `target` and `method` belong to a decorated method and are empty elsewhere. */
export interface TimeoutContext {
  key: string;
  args: readonly unknown[];
  target: unknown;
  method: string | symbol | undefined;
  error: LockTimeoutError;
}

/** When patience ends: reject with {@link LockTimeoutError}, resolve to `undefined`, or to what the function returns. */
export type OnTimeout = 'throw' | 'skip' | ((context: TimeoutContext) => unknown);

/** How to run work under a lease. */
export interface UsingOptions extends AcquireOptions {
  /** Default `'throw'`. */
  onTimeout?: OnTimeout;
  /**
   * When the lease was lost while the work ran and the work succeeded: reject with {@link LockLostError}, or ignore it. Where it is ignored, the
   * call does not wait for the reply to its release, which is sent at once; `close()` waits for it. Default `'throw'`.
   */
  onLost?: 'throw' | 'ignore';
}

export type ResolvedOptions = UsingOptions &
  Required<Pick<UsingOptions, 'keyTimeout' | 'retryCount' | 'retryInterval' | 'reentrant' | 'fair' | 'minHold' | 'onTimeout' | 'onLost'>>;

const DEFAULTS: ResolvedOptions = {
  keyTimeout: 1000,
  retryCount: 3,
  retryInterval: 500,
  reentrant: true,
  fair: false,
  minHold: 0,
  onTimeout: 'throw',
  onLost: 'throw',
};

const DURATION = integerFrom(0);

/** What the options of `using` must be. */
export const USING_CHECKS = {
  // Of a shorter lease, 2 ms for the drift of clocks are too large a part, and a renewal each third of it too many requests.
  keyTimeout: integerFrom(10),
  retryCount: integerFrom(0),
  retryInterval: integerFrom(1),
  waitTimeout: (value) => (value === Infinity || !DURATION(value) ? undefined : 'a whole number of at least 0, or Infinity'),
  reentrant: oneOf(true, false),
  fair: oneOf(true, false),
  minHold: DURATION,
  maxHold: integerFrom(1),
  signal: instanceLike('an AbortSignal', 'aborted', 'addEventListener'),
  onTimeout: (value) =>
    typeof value === 'function' || value === 'throw' || value === 'skip' ? undefined : '"throw", "skip" or a function',
  onLost: oneOf('throw', 'ignore'),
} as const satisfies Record<keyof UsingOptions, Check>;

export const ACQUIRE_CHECKS = without(USING_CHECKS, 'onTimeout', 'onLost');

/** Complete options of a {@link Locks}, from its defaults and ours. */
export function completeOptions(defaults: UsingOptions): ResolvedOptions {
  return { ...DEFAULTS, ...defined(defaults) };
}

/** The caller's options over the complete ones of its {@link Locks}. A caller's own `retryCount` beats a default `waitTimeout`. */
export function resolveOptions(defaults: ResolvedOptions, own: UsingOptions | undefined): ResolvedOptions {
  if (own === undefined) return defaults;
  // One by one, always in the same order: for each lock that is taken, spreading and deleting would cost more than the rest of it.
  return {
    keyTimeout: own.keyTimeout ?? defaults.keyTimeout,
    retryCount: own.retryCount ?? defaults.retryCount,
    retryInterval: own.retryInterval ?? defaults.retryInterval,
    waitTimeout: own.waitTimeout ?? (own.retryCount === undefined ? defaults.waitTimeout : undefined),
    reentrant: own.reentrant ?? defaults.reentrant,
    fair: own.fair ?? defaults.fair,
    minHold: own.minHold ?? defaults.minHold,
    maxHold: own.maxHold ?? defaults.maxHold,
    signal: own.signal ?? defaults.signal,
    onTimeout: own.onTimeout ?? defaults.onTimeout,
    onLost: own.onLost ?? defaults.onLost,
  };
}
