import { heldLease } from '../core/holding/call-chain.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import { checkOptions, integerFrom, oneOf } from '../core/model/check-options.js';
import { LockConfigError } from '../core/model/errors.js';
import type { LeaseDriver, Share } from '../core/store/lease-driver.js';
import type { Lock } from './lock.js';

/** What makes a lock a mutex, a read lock, a write lock or a semaphore. */
export interface Kind {
  readonly driver: LeaseDriver;
  /** Locks of one group and key are ways to hold one thing; the amount says which way. */
  readonly group: object;
  readonly amount: string;
  /** How many callers of this process may hold the key side by side, and pass it on to others that wait here; 0: it is not passed on. */
  readonly places: number;
  /** The lease that a re-entrant call shares. */
  held(key: string): HeldLease | undefined;
  /** How much is asked for of a key that several may hold. */
  share(key: string, reentrant: boolean): Share | undefined;
}

/** One holder at a time, in all processes that share the store. */
export function mutexKind(driver: LeaseDriver): Kind {
  return { driver, group: driver, amount: 'all', places: 1, held: (key) => heldLease(driver, key), share: () => undefined };
}

/** Which waiters go first: the ones that came first, the readers or the writers. */
export type ReadWritePolicy = 'fair' | 'readers' | 'writers';

export interface ReadWriteLockOptions {
  /** Default `'fair'`: first come, first served, so that neither side starves. With the other two, a stream of one side keeps the other one out. */
  policy?: ReadWritePolicy;
}

type Drivers = Readonly<Record<'read' | 'write', LeaseDriver>>;

/** Many readers or one writer, in all processes that share the store. */
export interface ReadWriteLock {
  /**
   * The side that many hold at a time. Its fencing token is that of the last write. Under its own write lock a call chain may read too, and keep the
   * read lock when it gives the write lock back (downgrade).
   */
  readonly read: Lock;
  /** The side that one holds alone. A call chain that only reads must not ask for it: it would wait for itself. */
  readonly write: Lock;
}

/** The side of a read/write lock that many hold at a time. Its fencing token is that of the last write. */
export function readKind(drivers: Drivers, policy: ReadWritePolicy | undefined): Kind {
  const { read, write } = drivers;
  const rank = policy === 'writers' ? 1 : 0;
  return {
    driver: read,
    group: drivers,
    amount: 'read',
    places: 0,
    held: (key) => heldLease(read, key),
    share(key, reentrant) {
      const written = reentrant ? heldLease(write, key) : undefined;
      written?.assertHeld();
      // The next writer must not get the key while we read on.
      if (written) written.turn.tenure.isKept = true;
      return { count: 1, permits: Infinity, rank, beside: written?.owner };
    },
  };
}

/** The side of a read/write lock that one holds alone. */
export function writeKind(drivers: Drivers, policy: ReadWritePolicy | undefined): Kind {
  const { read, write } = drivers;
  const rank = policy === 'readers' ? 1 : 0;
  return {
    driver: write,
    group: drivers,
    amount: 'write',
    // Readers that go first must not wait for several writers in turn.
    places: rank === 1 ? 0 : 1,
    held: (key) => heldLease(write, key),
    share(key) {
      if (!heldLease(read, key)) return { count: Infinity, permits: Infinity, rank };
      throw new LockConfigError(
        `Lock "${key}": this call chain holds the read lock and asks for the write lock, for which it would wait for itself. ` +
          'Take the write lock first; the read lock can be taken under it.',
        { key },
      );
    },
  };
}

export interface SemaphoreOptions {
  /**
   * How many permits there are, from 1. The last request decides: a request with another number changes it for all. Leases that exceed a smaller
   * number are kept.
   */
  permits: number;
  /** How many of them one lease takes, all together or none. Default 1. */
  count?: number;
}

/** Redis counts the whole key of a write lock in permits too: this is well below what it takes for all of them. */
const MOST_PERMITS = 1_000_000;

/** At most so many permits at a time, in all processes that share the store. A permit expires with its holder. */
export function semaphoreKind(driver: LeaseDriver, { permits, count = 1 }: SemaphoreOptions): Kind {
  return {
    driver,
    group: driver,
    amount: `${count} of ${permits}`,
    places: Math.floor(permits / count),
    held(key) {
      const held = heldLease(driver, key);
      const has = held?.turn.tenure.share?.count ?? 0;
      if (!held || count <= has) return held;
      throw new LockConfigError(
        `Semaphore "${key}": this call chain holds ${has} permits and asks for ${count}: it could wait for itself. ` +
          'Take all of them at first, or set reentrant: false.',
        { key },
      );
    },
    share: () => ({ count, permits, rank: 0 }),
  };
}

export const READ_WRITE_CHECKS = { policy: oneOf('fair', 'readers', 'writers') };

export const SEMAPHORE_CHECKS = { permits: integerFrom(1, MOST_PERMITS), count: integerFrom(1) };

/** @throws {LockConfigError} naming the option. */
export function checkSemaphoreOptions(options: SemaphoreOptions, where: string): void {
  checkOptions(options, where, SEMAPHORE_CHECKS, 'permits');
  const { permits, count = 1 } = options;
  if (count <= permits) return;
  throw new LockConfigError(`${where}: "count" must be a whole number from 1 to the number of permits (${permits}), not ${count}.`);
}
