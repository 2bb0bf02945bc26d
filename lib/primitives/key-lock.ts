import { heldLease, runHolding } from '../core/holding/call-chain.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import { abortedBy, asStoreError, configError } from '../core/model/errors.js';
import { checkOptions, shown } from '../core/model/check-options.js';
import type { Lease } from '../core/model/lease.js';
import { ACQUIRE_CHECKS, resolveOptions, type AcquireOptions, type ResolvedOptions } from '../core/model/options.js';
import { notHandedOver, type Ticket } from '../core/model/ticket.js';
import type { CheckReply } from '../core/store/lease-driver.js';
import { patienceOf } from '../core/waiting/caller.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { Kind } from './kinds.js';
import { LockBase, takeFor, type Lock } from './lock.js';

/** A lock of one key at one store. */
export class KeyLock extends LockBase<HeldLease> {
  constructor(
    readonly queues: LockQueues,
    readonly kind: Kind,
    key: string,
    defaults: ResolvedOptions,
  ) {
    super(key, defaults);
  }

  /** Takes over the lease of this ticket. */
  adopt(ticket: Ticket, options?: AcquireOptions): Promise<HeldLease> {
    if (!this.kind.driver.adopt) throw notHandedOver(this.key, 'the store does not offer that');
    checkOptions(options, 'adopt', ACQUIRE_CHECKS);
    const resolved = resolveOptions(this.defaults, options);
    const kept = { ...resolved, minHold: Math.max(resolved.minHold, ticket.keepFor) };
    return takeFor(resolved.label, () => this.take(kept, false, undefined, ticket));
  }

  /** @param taken the leases that a multi-lock has of its other keys. @param adopts the lease that it takes over. */
  take(options: ResolvedOptions, guardsBody: boolean, taken?: readonly HeldLease[], adopts?: Ticket): Promise<HeldLease> {
    const { key, kind, queues } = this;
    const { signal, reentrant } = options;
    if (signal?.aborted) throw abortedBy(signal, key);
    const held = reentrant && !adopts ? heldLease(kind.driver, key) : undefined;
    if (held) {
      kind.checkReentry?.(held);
      return held.reenter(guardsBody, options);
    }
    queues.runtime.assertOpen(key);
    const { name, driver, maxHolders } = kind;
    const call = {
      kind: name,
      options,
      patience: patienceOf(options),
      share: kind.share?.(key, reentrant),
      guardsBody,
      taken,
      adopts,
      trace: queues.runtime.tracing?.begin({ key, kind: name, label: options.label }),
    };
    return queues.acquire(driver, key, kind.amount === 'all' ? key : `${key}\n${kind.amount}`, adopts ? 0 : maxHolders, call);
  }

  /** @param shown what `currentLease()` returns to the work. */
  holding<T>(lease: HeldLease, work: () => T, shown?: Lease): T {
    const { tracing } = this.queues.runtime;
    return tracing ? tracing.run(lease, () => runHolding(lease, work, shown)) : runHolding(lease, work, shown);
  }

  /** `'same'`: both are one lock; `'rival'`: one call chain cannot hold both; `'other'`: they are independent. */
  relationTo({ key, kind }: KeyLock): 'same' | 'rival' | 'other' {
    if (key !== this.key || kind.group !== this.kind.group) return 'other';
    return kind.amount === this.kind.amount ? 'same' : 'rival';
  }

  /** Reads the state of the key at the store. */
  async check(): Promise<CheckReply> {
    try {
      return await this.kind.driver.check({ key: this.key, owner: 'nobody' });
    } catch (cause) {
      throw asStoreError(cause, this.key);
    }
  }

  /** Whether this call chain holds the key. */
  get isHeldHere(): boolean {
    return heldLease(this.kind.driver, this.key) !== undefined;
  }
}

/** The lock behind the public interface. It may come from another copy of this package. */
export function takeable(lock: Lock): KeyLock {
  if (typeof lock === 'object' && lock !== null && 'take' in lock) return lock as KeyLock;
  throw configError('OPTION', `A multi-lock is made of keys and locks, not of ${shown(lock)}.`);
}
