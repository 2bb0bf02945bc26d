import { defined, integerFrom, ofType, oneOf, type Check } from './check-options.js';
import { configError, type LockTimeoutError } from './errors.js';

/** How to take and keep a lease. All times are whole milliseconds. */
export interface AcquireOptions {
  /**
   * Lease length, from 10. The lease is valid for this time less 1 % (at least 2 ms), counted from before its request was sent. The watchdog renews
   * it while it is held. Choose it well above the longest pause of the process. Default 10,000.
   */
  keyTimeout?: number;
  /** The number of tries, without a `waitTimeout`. 1: one try, no waiting; 0: wait until acquired. Default 3. */
  retryCount?: number;
  /** The wait timeout is the sum of `retryCount - 1` random values of 1–2 × this. Default 500. */
  retryInterval?: number;
  /**
   * Milliseconds that a caller waits for the key at most, instead of `retryCount` and `retryInterval`. 0: one try; `Infinity`: no limit.
   * Default: the sum of `retryCount - 1` random values of 1–2 × `retryInterval`.
   */
  waitTimeout?: number;
  /** The same call chain may take its own key again. Default true. */
  reentrant?: boolean;
  /** First come, first served, across processes, by three requests a call. Default false. */
  fair?: boolean;
  /** The key stays taken for at least this time after it was taken, also when the process dies. Not longer than `maxHold`. Default 0. */
  minHold?: number;
  /** `false`: a fixed lease. It is not renewed, its signal aborts at its end, and the key is free then. Default true. */
  renew?: boolean;
  /** After this time the lease's signal aborts, and the lease is not renewed any more. Default: no limit. */
  maxHold?: number;
  /** The name of the caller in errors: the stack of an error that ends a wait does not show it. Default: none; of a decorated method `'Class.method'`. */
  label?: string;
  /** Ends the wait: the acquire rejects at once with a {@link LockAbortedError}. */
  signal?: AbortSignal;
}

/** The argument of an `onTimeout` function. `args`, `target` and `method` are those of a decorated method, and empty elsewhere. */
export interface TimeoutContext {
  key: string;
  args: readonly unknown[];
  target: unknown;
  method: string | symbol | undefined;
  error: LockTimeoutError;
}

/** When the wait timeout ends: reject with {@link LockTimeoutError}, resolve to `undefined`, or to what the function returns. */
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

export type ResolvedOptions = UsingOptions & {
  /** A candidate of an election: it may wait without limit, so no warning is logged. */
  readonly isStandby?: boolean;
} & Required<
    Pick<UsingOptions, 'keyTimeout' | 'retryCount' | 'retryInterval' | 'reentrant' | 'fair' | 'minHold' | 'renew' | 'onTimeout' | 'onLost'>
  >;

const DEFAULTS: ResolvedOptions = {
  keyTimeout: 10_000,
  retryCount: 3,
  retryInterval: 500,
  reentrant: true,
  fair: false,
  minHold: 0,
  renew: true,
  onTimeout: 'throw',
  onLost: 'throw',
};

const DURATION = integerFrom(0);

/** @internal */
export const ACQUIRE_CHECKS = {
  // The 2 ms for the drift of clocks would be too large a part of a shorter lease.
  keyTimeout: integerFrom(10),
  retryCount: integerFrom(0),
  retryInterval: integerFrom(1),
  waitTimeout: (value) => (value === Infinity || !DURATION(value) ? undefined : 'a whole number of at least 0, or Infinity'),
  reentrant: oneOf(true, false),
  fair: oneOf(true, false),
  minHold: DURATION,
  renew: oneOf(true, false),
  maxHold: integerFrom(1),
  label: ofType('string'),
  signal: (value) => ('aborted' in Object(value) && 'addEventListener' in Object(value) ? undefined : 'an AbortSignal'),
} as const satisfies Record<keyof AcquireOptions, Check>;

/** @internal */
export const USING_CHECKS = {
  ...ACQUIRE_CHECKS,
  onTimeout: (value) =>
    typeof value === 'function' || value === 'throw' || value === 'skip' ? undefined : '"throw", "skip" or a function',
  onLost: oneOf('throw', 'ignore'),
} as const satisfies Record<keyof UsingOptions, Check>;

export function completeOptions(defaults: UsingOptions): ResolvedOptions {
  return { ...DEFAULTS, ...defined(defaults) };
}

/** @throws {LockConfigError} if the key stays taken for longer than it may be held. */
export function checkHolds<O extends Pick<UsingOptions, 'minHold' | 'maxHold'>>(options: O, where = ''): O {
  const { minHold = 0, maxHold = Infinity } = options;
  if (minHold <= maxHold) return options;
  throw configError('OPTION', `${where}"minHold" (${minHold} ms) must not be longer than "maxHold" (${maxHold} ms).`);
}

/**
 * The caller's options over the complete ones of its {@link Locks}. A caller's own `retryCount` beats a default `waitTimeout`.
 *
 * @throws {LockConfigError} if they do not fit together.
 */
export function resolveOptions(defaults: ResolvedOptions, own: UsingOptions | undefined): ResolvedOptions {
  if (own === undefined) return defaults;
  // One by one, always in the same order: spreading and deleting them would cost more than the rest of an acquire (`npm run bench -- builds`).
  return checkHolds({
    keyTimeout: own.keyTimeout ?? defaults.keyTimeout,
    retryCount: own.retryCount ?? defaults.retryCount,
    retryInterval: own.retryInterval ?? defaults.retryInterval,
    waitTimeout: own.waitTimeout ?? (own.retryCount === undefined ? defaults.waitTimeout : undefined),
    reentrant: own.reentrant ?? defaults.reentrant,
    fair: own.fair ?? defaults.fair,
    minHold: own.minHold ?? defaults.minHold,
    renew: own.renew ?? defaults.renew,
    maxHold: own.maxHold ?? defaults.maxHold,
    label: own.label ?? defaults.label,
    signal: own.signal ?? defaults.signal,
    onTimeout: own.onTimeout ?? defaults.onTimeout,
    onLost: own.onLost ?? defaults.onLost,
  });
}
