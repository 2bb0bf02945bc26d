import type { LeaseDriver } from '../core/driver.js';
import { abortedBy, LockLostError, LockTimeoutError } from '../core/errors.js';
import { heldLease, runHolding } from '../core/holds.js';
import type { Lease } from '../core/lease.js';
import {
  ACQUIRE_OPTIONS,
  checkOptions,
  resolveOptions,
  type AcquireOptions,
  type ResolvedOptions,
  type UsingOptions,
} from '../core/options.js';
import { patienceOf } from '../core/patience.js';
import type { LocalQueues } from '../core/local-queues.js';

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

/** One holder at a time, in all processes that share the store. */
export class Mutex {
  /** @internal Use {@link Locks.mutex}. */
  constructor(
    private readonly queues: LocalQueues,
    private readonly driver: LeaseDriver,
    /** The key as the store knows it, namespace included. */
    readonly key: string,
    private readonly defaults: ResolvedOptions,
  ) {}

  /**
   * Waits for the key and takes it. The lease is renewed until it is released.
   *
   * @throws {LockTimeoutError} when patience ends while another holds the key.
   * @throws {LockAbortedError} when `signal` aborts or the locks are closed.
   * @throws {StoreError} when patience ends in an outage, or at once where no retry helps.
   * @throws {LockLostError} when this call chain holds the key by a lease that is lost.
   * @throws {LockConfigError} when an option is wrong.
   */
  acquire(options?: AcquireOptions): Promise<Lease> {
    // Not `async`: each promise more is one more turn until the caller has its lease.
    try {
      checkOptions(options, `Lock "${this.key}"`, ACQUIRE_OPTIONS);
      return this.take(resolveOptions(this.defaults, options), false);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As {@link acquire}, but tries once and resolves to `null` where the key is taken. */
  async tryAcquire(options?: AcquireOptions): Promise<Lease | null> {
    checkOptions(options, `Lock "${this.key}"`, ACQUIRE_OPTIONS);
    try {
      return await this.acquire({ ...options, waitTimeout: 0 });
    } catch (error) {
      if (error instanceof LockTimeoutError) return null;
      throw error;
    }
  }

  /**
   * Runs the work under the key, and in a call chain that may take the key again. The work's result or error comes through as it is.
   *
   * @throws as {@link acquire}; `onTimeout` changes what becomes of a {@link LockTimeoutError}.
   * @throws {LockLostError} with the work's `result`, when the lease was lost meanwhile and the work succeeded, unless `onLost` is `'ignore'`.
   */
  async using<T, const O extends UsingOptions = NoOptions>(
    work: (lease: Lease) => T | PromiseLike<T>,
    options?: O,
  ): Promise<T | OnTimeoutResult<O>> {
    checkOptions(options, `Lock "${this.key}"`);
    const resolved = resolveOptions(this.defaults, options);
    let lease: Lease;
    try {
      lease = await this.take(resolved, true);
    } catch (error) {
      return (await resultOnTimeout(error, resolved, { args: [], target: undefined, method: undefined })) as OnTimeoutResult<O>;
    }
    let result: T;
    try {
      result = await runHolding(lease, () => work(lease));
    } catch (error) {
      await lease.release();
      throw error;
    }
    const loss = lossOf(lease, await lease.release(), resolved, result);
    if (loss) throw loss;
    return result;
  }

  /**
   * A lease by options that are checked and complete. Not `async`, for a promise costs as much as the rest of it: it may throw, too.
   *
   * @internal
   */
  take(options: ResolvedOptions, guardsBody: boolean): Promise<Lease> {
    const { key, driver, queues } = this;
    const { signal, minHold, maxHold } = options;
    if (signal?.aborted) throw abortedBy(signal, key);
    const held = options.reentrant ? heldLease(driver, key) : undefined;
    if (held) return held.reenter(guardsBody, { minHold, maxHold, signal });
    queues.runtime.assertOpen(key);
    const { keyTimeout: ttl, retryInterval, fair, waitTimeout, retryCount } = options;
    const patience = patienceOf({ retryCount, retryInterval, waitTimeout });
    return queues.acquire(driver, key, { ttl, minHold, maxHold, patience, retryInterval, fair, signal, guardsBody });
  }
}

/** What a call resolves to that did not get its lock; anything but a timeout is thrown on. */
export async function resultOnTimeout(
  error: unknown,
  options: ResolvedOptions,
  call: { args: readonly unknown[]; target: unknown; method: string | symbol | undefined },
): Promise<unknown> {
  const { onTimeout } = options;
  if (!(error instanceof LockTimeoutError) || onTimeout === 'throw') throw error;
  return onTimeout === 'skip' ? undefined : onTimeout({ key: error.key ?? '', ...call, error });
}

/** The error of a body that succeeded under a lease that its release found lost. */
export function lossOf(lease: Lease, wasOurs: boolean, options: ResolvedOptions, result: unknown): LockLostError | undefined {
  if (wasOurs || options.onLost === 'ignore') return undefined;
  const message = `The lease of "${lease.key}" was lost while the work ran: another may have worked at the same time.`;
  return new LockLostError(message, { key: lease.key, result });
}
