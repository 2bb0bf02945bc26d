import { LockLostError, LockTimeoutError } from '../core/model/errors.js';
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

declare const NONE: unique symbol;

/** Stands for no options: `using` then throws when patience ends. */
export interface NoOptions extends UsingOptions {
  readonly [NONE]?: never;
}

/** What `using` with these options resolves to when patience ends; `never`: it throws. */
export type OnTimeoutResult<O> = typeof NONE extends keyof O
  ? never
  : 'onTimeout' extends keyof O
    ? ResultOf<O['onTimeout' & keyof O]>
    : never;

type ResultOf<T> = T extends 'skip' ? undefined : T extends (...args: never[]) => infer R ? Awaited<R> : never;

/** What all kinds of lock offer. */
export interface Lock<L extends Lease = Lease> {
  /** The key as the store knows it, namespace included; of a multi-lock all keys, joined by `', '`. */
  readonly key: string;

  /**
   * Waits for the key and takes it. The lease is renewed until it is released.
   *
   * @throws {LockTimeoutError} when patience ends while another holds the key.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed.
   * @throws {StoreError} when patience ends in an outage, or at once where no retry helps.
   * @throws {LockLostError} when this call chain holds the key by a lease that is lost.
   * @throws {LockConfigError} when an option is wrong.
   */
  acquire(options?: AcquireOptions): Promise<L>;

  /** As {@link acquire}, but tries once and resolves to `null` where the key is taken. */
  tryAcquire(options?: AcquireOptions): Promise<L | null>;

  /**
   * Runs the work under the key, and in a call chain that may take the key again. The work's result or error comes through as it is.
   *
   * @throws as {@link acquire}; `onTimeout` changes what becomes of a {@link LockTimeoutError}.
   * @throws {LockLostError} with the work's `result`, when the lease was lost meanwhile and the work succeeded, unless `onLost` is `'ignore'`. Its
   *   `cause` says how.
   */
  using<T, const O extends UsingOptions = NoOptions>(work: (lease: L) => T | PromiseLike<T>, options?: O): Promise<T | OnTimeoutResult<O>>;
}

/** A lease, with why it is no longer held. */
export interface LosableLease extends Lease {
  readonly loss: unknown;
}

/** What a lock must be able to do for {@link runUnder}. */
export interface Guard<L extends LosableLease> {
  /** A lease by options that are checked and complete. It may also throw: a promise more costs as much as the rest of it. */
  take(options: ResolvedOptions, guardsBody: boolean): Promise<L>;
  /** Runs the work in a call chain that holds this lease. */
  holding<T>(lease: L, work: () => T): T;
}

/** The part that all locks have in common. */
export abstract class LockBase<L extends LosableLease> implements Lock<L>, Guard<L> {
  protected constructor(
    readonly key: string,
    protected readonly defaults: ResolvedOptions,
  ) {}

  abstract take(options: ResolvedOptions, guardsBody: boolean): Promise<L>;

  abstract holding<T>(lease: L, work: () => T): T;

  acquire(options?: AcquireOptions): Promise<L> {
    // Not `async`: each promise more is one more turn until the caller has its lease.
    try {
      checkOptions(options, `Lock "${this.key}"`, ACQUIRE_CHECKS);
      return this.take(resolveOptions(this.defaults, options), false);
    } catch (error) {
      return Promise.reject(error);
    }
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

  async using<T, const O extends UsingOptions = NoOptions>(
    work: (lease: L) => T | PromiseLike<T>,
    options?: O,
  ): Promise<T | OnTimeoutResult<O>> {
    checkOptions(options, `Lock "${this.key}"`, USING_CHECKS);
    return (await runUnder(this, resolveOptions(this.defaults, options), work, NO_CALL)) as T | OnTimeoutResult<O>;
  }
}

/** The call for which a lock is taken, as `onTimeout` sees it. */
export type GuardedCall = Pick<TimeoutContext, 'args' | 'target' | 'method'>;

const NO_CALL: GuardedCall = { args: [], target: undefined, method: undefined };

/** Runs the work while a lease of the lock is held. Resolves to the result of the work, or to what `onTimeout` makes of a timeout. */
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
    return resultOnTimeout(error, options, call);
  }
  let result: unknown;
  try {
    result = await lock.holding(lease, () => work(lease));
  } catch (error) {
    await releaseOf(lease, options);
    throw error;
  }
  const loss = lossOf(lease, await releaseOf(lease, options), result);
  if (loss) throw loss;
  return result;
}

/** What a call resolves to that did not get its lock; any error but a timeout is thrown on. */
export async function resultOnTimeout(error: unknown, { onTimeout }: ResolvedOptions, call: GuardedCall): Promise<unknown> {
  if (!(error instanceof LockTimeoutError) || onTimeout === 'throw') throw error;
  return onTimeout === 'skip' ? undefined : onTimeout({ key: error.key ?? '', ...call, error });
}

/** Gives back the lease of a body that has ended. A call that ignores a loss does not wait for the reply, which would only tell of that. */
export function releaseOf(lease: Lease, { onLost }: ResolvedOptions): Promise<boolean> | true {
  const released = lease.release();
  return onLost === 'ignore' ? true : released;
}

/** The error of a body that succeeded under a lease that its release found lost. */
export function lossOf(lease: LosableLease, wasOurs: boolean, result: unknown): LockLostError | undefined {
  if (wasOurs) return undefined;
  const message = `The lease of "${lease.key}" was lost while the work ran: another may have worked at the same time.`;
  return new LockLostError(message, { key: lease.key, result, cause: lease.loss });
}
