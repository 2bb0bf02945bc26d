import { inspect } from 'node:util';
import type { LeaseDriver, Share } from '../core/store/lease-driver.js';
import { LockConfigError } from '../core/model/errors.js';
import type { Lease } from '../core/holding/lease.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import { checkOptions, type ResolvedOptions } from '../core/model/options.js';
import { StoreLock } from './store-lock.js';

export interface SemaphoreOptions {
  /**
   * How many permits there are, from 1. It is what the one who asked last said: whoever asks with another number changes it for all. Those who
   * hold more than a smaller number keep what they hold.
   */
  permits: number;
  /** How many of them one lease takes, all together or none. Default 1. */
  count?: number;
}

/** Well below what Redis, which counts the whole key of a write lock in permits too, takes for all of them. */
const MOST = 1_000_000;

/** At most so many permits at a time, in all processes that share the store. A permit expires with its holder. First come, first served. */
export class Semaphore extends StoreLock {
  readonly permits: number;
  private readonly count: number;

  /** @internal Use {@link Locks.semaphore}. */
  constructor(queues: LockQueues, driver: LeaseDriver, key: string, defaults: ResolvedOptions, options: SemaphoreOptions) {
    super(queues, driver, key, defaults);
    const { permits, count = 1 } = checkSemaphoreOptions(options, `Semaphore "${key}"`);
    this.permits = permits;
    this.count = count;
  }

  protected override get amount(): string {
    return `${this.count} of ${this.permits}`;
  }

  protected override held(): Lease | undefined {
    const held = super.held();
    if (!held || this.count <= (held.share?.count ?? 0)) return held;
    throw new LockConfigError(
      `Semaphore "${this.key}": this call chain holds ${held.share?.count} permits and asks for ${this.count}: it could wait for itself. ` +
        'Take all of them at first, or set reentrant: false.',
      { key: this.key },
    );
  }

  protected override share(): Share {
    return { count: this.count, permits: this.permits, rank: 0 };
  }
}

/** @throws {LockConfigError} naming the option. */
export function checkSemaphoreOptions(options: SemaphoreOptions, where: string): SemaphoreOptions {
  checkOptions(options ?? null, where, ['permits', 'count']);
  const { permits, count = 1 } = options;
  if (!Number.isSafeInteger(permits) || permits < 1 || permits > MOST) {
    throw new LockConfigError(`${where}: "permits" must be a whole number from 1 to ${MOST}, not ${inspect(permits)}.`);
  }
  if (!Number.isSafeInteger(count) || count < 1 || count > permits) {
    throw new LockConfigError(
      `${where}: "count" must be a whole number from 1 to the number of permits (${permits}), not ${inspect(count)}.`,
    );
  }
  return options;
}
