import type { LeaseDriver, Share } from '../core/store/lease-driver.js';
import { abortedBy } from '../core/model/errors.js';
import { heldLease, runHolding } from '../core/holding/call-chain.js';
import type { Lease } from '../core/holding/lease.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { ResolvedOptions } from '../core/model/options.js';
import { patienceOf } from '../core/waiting/backoff.js';
import { LeaseLock, type AnyLease } from './lease-lock.js';

/** A lock that is one key at one store. */
export abstract class StoreLock extends LeaseLock<Lease> {
  protected constructor(
    private readonly queues: LockQueues,
    protected readonly driver: LeaseDriver,
    key: string,
    defaults: ResolvedOptions,
  ) {
    super(key, defaults);
  }

  /** @internal */
  take(options: ResolvedOptions, guardsBody: boolean): Promise<Lease> {
    const { key, driver, queues } = this;
    const { signal, minHold, maxHold } = options;
    if (signal?.aborted) throw abortedBy(signal, key);
    const held = options.reentrant ? this.held() : undefined;
    if (held) return held.reenter(guardsBody, { minHold, maxHold, signal });
    queues.runtime.assertOpen(key);
    const { keyTimeout: ttl, retryInterval, fair, waitTimeout, retryCount } = options;
    const patience = patienceOf({ retryCount, retryInterval, waitTimeout });
    const share = this.share(options);
    return queues.acquire(driver, key, { ttl, minHold, maxHold, patience, retryInterval, fair, share, signal, guardsBody });
  }

  /** @internal */
  override get stopping(): AbortSignal {
    return this.queues.runtime.stopping;
  }

  /** @internal */
  override get requestTimeout(): number {
    return this.queues.runtime.requestTimeout;
  }

  /** @internal */
  holding<T>(lease: Lease, work: () => T): T {
    return runHolding(lease, work);
  }

  /** @internal */
  override relationTo(other: LeaseLock<AnyLease>): 'same' | 'rival' | 'other' {
    if (!(other instanceof StoreLock) || other.key !== this.key || other.group !== this.group) return 'other';
    return other.amount === this.amount ? 'same' : 'rival';
  }

  /** Locks that have it in common, and the key, are ways to hold one thing. */
  protected get group(): object {
    return this.driver;
  }

  /** Which of these ways. */
  protected get amount(): string {
    return 'all';
  }

  /** The lease that a re-entrant call shares. It may throw where this call chain could only wait for itself. */
  protected held(): Lease | undefined {
    return heldLease(this.driver, this.key);
  }

  /** How much is asked for of a key that several may hold. */
  protected share(_options: ResolvedOptions): Share | undefined {
    return undefined;
  }
}
