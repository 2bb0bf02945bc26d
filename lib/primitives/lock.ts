import { configError, LockError, LockLostError, LockTimeoutError, messageOf, nameCaller } from '../core/model/errors.js';
import { checkOptions } from '../core/model/check-options.js';
import type { Lease } from '../core/model/lease.js';
import {
  ACQUIRE_CHECKS,
  resolveOptions,
  USING_CHECKS,
  type AcquireOptions,
  type ResolvedOptions,
  type TimeoutContext,
  type UsingOptions,
} from '../core/model/options.js';
import { promised } from '../core/util/promised.js';

declare const NONE: unique symbol;

/** The type of the options of a call without any: `using` then throws when the wait timeout ends. */
export interface NoOptions extends UsingOptions {
  readonly [NONE]?: never;
}

/** The result of `using` with these options when the wait timeout ends; `never`: it throws. */
export type OnTimeoutResult<O> = typeof NONE extends keyof O
  ? never
  : 'onTimeout' extends keyof O
    ? ResultOf<O['onTimeout' & keyof O]>
    : never;

type ResultOf<T> = T extends 'skip' ? undefined : T extends (...args: never[]) => infer R ? Awaited<R> : never;

/** A lock of any kind. */
export interface Lock<L extends Lease = Lease> {
  /** The key as the store knows it, namespace included; of a multi-lock all keys, joined by `', '`. */
  readonly key: string;

  /**
   * Waits for the key and takes it. The lease is renewed until it is released.
   *
   * @throws {LockTimeoutError} when the wait timeout ends while another caller holds the key.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed.
   * @throws {StoreError} when the wait timeout ends in an outage, or at once if no retry can help.
   * @throws {LockLostError} when this call chain holds the key already, and that lease is lost.
   * @throws {LockConfigError} when an option is wrong, the key is in use as another kind of lock, or this call chain would wait for itself.
   */
  acquire(options?: AcquireOptions): Promise<L>;

  /** Tries once to take the key, as {@link acquire} does, and resolves to `null` if it is taken. */
  tryAcquire(options?: AcquireOptions): Promise<L | null>;

  /**
   * Runs the work while it holds the key. The call chain of the work can take the key again. The work's result or error is passed on unchanged.
   *
   * @throws as {@link acquire}; `onTimeout` may replace a {@link LockTimeoutError}.
   * @throws {LockLostError} with the work's `result`, when the work succeeded but its lease was lost, unless `onLost` is `'ignore'`. Its `cause` is
   *   the loss.
   */
  using<T, const O extends UsingOptions = NoOptions>(work: (lease: L) => T | PromiseLike<T>, options?: O): Promise<T | OnTimeoutResult<O>>;
}

export interface LosableLease extends Lease {
  /** Why it is no longer held. */
  readonly loss: unknown;
  /** Whether another process can adopt it: then nothing is left to release, and nothing was lost. */
  readonly isHandedOver?: boolean;
}

/** The part of a lock that {@link runUnder} uses. */
export interface Guard<L extends LosableLease> {
  /** Takes a lease; the options are checked and complete. It may throw synchronously, because `async` would cost another promise. */
  take(options: ResolvedOptions, guardsBody: boolean): Promise<L>;
  /** Runs the work in a call chain that holds this lease. */
  holding<T>(lease: L, work: () => T): T;
}

export abstract class LockBase<L extends LosableLease> implements Lock<L>, Guard<L> {
  protected constructor(
    readonly key: string,
    protected readonly defaults: ResolvedOptions,
  ) {}

  abstract take(options: ResolvedOptions, guardsBody: boolean): Promise<L>;

  abstract holding<T>(lease: L, work: () => T): T;

  acquire(options?: AcquireOptions): Promise<L> {
    return promised(() => {
      checkOptions(options, `Lock "${this.key}"`, ACQUIRE_CHECKS);
      const resolved = resolveOptions(this.defaults, options);
      return takeFor(resolved.label, () => this.take(resolved, false));
    });
  }

  async tryAcquire(options?: AcquireOptions): Promise<L | null> {
    checkOptions(options, `Lock "${this.key}"`, ACQUIRE_CHECKS);
    try {
      return await this.acquire({ ...options, waitTimeout: 0 });
    } catch (error) {
      if (error instanceof LockTimeoutError) return null;
      throw error;
    }
  }

  using<T, const O extends UsingOptions = NoOptions>(work: (lease: L) => T | PromiseLike<T>, options?: O): Promise<T | OnTimeoutResult<O>> {
    return promised(() => {
      const where = `Lock "${this.key}"`;
      if (typeof work !== 'function')
        throw configError(
          'OPTION',
          `${where}: the work must be a function, and comes before the options: using(async (lease) => …, options).`,
        );
      checkOptions(options, where, USING_CHECKS);
      return runUnder(this, resolveOptions(this.defaults, options), work, NO_CALL) as Promise<T | OnTimeoutResult<O>>;
    });
  }
}

/** The call for which a lock is taken, as `onTimeout` sees it. */
export type GuardedCall = Pick<TimeoutContext, 'args' | 'target' | 'method'>;

const NO_CALL: GuardedCall = { args: [], target: undefined, method: undefined };

/** Runs the work while a lease of the lock is held. Resolves to the result of the work, or to what `onTimeout` returns. */
export async function runUnder<L extends LosableLease>(
  lock: Guard<L>,
  options: ResolvedOptions,
  work: (lease: L) => unknown,
  call: GuardedCall,
): Promise<unknown> {
  let lease: L;
  try {
    lease = await lock.take(options, true);
  } catch (error) {
    const { onTimeout, label } = options;
    named(error, label);
    if (!(error instanceof LockTimeoutError) || onTimeout === 'throw') throw error;
    return onTimeout === 'skip' ? undefined : onTimeout({ key: error.key ?? '', ...call, error });
  }
  let result: unknown;
  try {
    // Inside, so that the work of a query builder, which begins with its `then`, is in the call chain, too.
    result = await lock.holding(lease, () => Promise.resolve(work(lease)));
  } catch (error) {
    try {
      await releaseOf(lease, options);
    } catch {
      // A callback of the release has failed: the work's own error says more.
    }
    throw error;
  }
  if ((await releaseOf(lease, options)) || lease.isHandedOver) return result;
  const { label } = options;
  const { loss } = lease;
  const known = loss instanceof LockLostError ? loss : undefined;
  const message = `${known ? messageOf(known) : `The lease of "${lease.key}" was lost.`} Its work went on: another may have worked at the same time.`;
  const details = { key: lease.key, result, revoked: known?.revoked, cause: loss };
  throw new LockLostError(label === undefined ? message : `${label}: ${message}`, details);
}

/** Takes a lease for the caller with this name, which its errors have. */
export function takeFor<L>(label: string | undefined, take: () => Promise<L>): Promise<L> {
  if (label === undefined) return take();
  return promised(take).catch((error: unknown) => Promise.reject(named(error, label) as Error));
}

/** A loss is also the reason of a signal, which others may keep: it has no caller. */
function named(error: unknown, label: string | undefined): unknown {
  if (label !== undefined && error instanceof LockError && !(error instanceof LockLostError)) nameCaller(error, label);
  return error;
}

/** A call that ignores a loss does not wait for the reply to its release, which would only report a loss. */
function releaseOf(lease: Lease, { onLost }: ResolvedOptions): Promise<boolean> | true {
  const released = lease.release();
  if (onLost !== 'ignore') return released;
  released.catch(() => undefined);
  return true;
}
