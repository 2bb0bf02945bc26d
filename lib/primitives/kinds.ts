import { heldLease } from '../core/holding/call-chain.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import { checkOptions, integerFrom, oneOf } from '../core/model/check-options.js';
import { configError } from '../core/model/errors.js';
import type { LockKindName } from '../core/model/events.js';
import type { LeaseDriver, Share } from '../core/store/lease-driver.js';
import type { Lock } from './lock.js';

/** @internal The difference between a mutex, a read lock, a write lock and a semaphore. */
export interface Kind {
  readonly name: LockKindName;
  readonly driver: LeaseDriver;
  /** Locks of the same group and key exclude each other, or share the key. */
  readonly group: object;
  /** How much of the key a lock takes. */
  readonly amount: string;
  /** How many callers of this process may hold the key at the same time, and hand it to others that wait here; 0: it is not handed over. */
  readonly maxHolders: number;
  /** The share that is asked for of a key that several may hold. */
  share?(key: string, reentrant: boolean): Share;
  /** @throws {LockConfigError} if a re-entrant call cannot share this lease. */
  checkReentry?(held: HeldLease): void;
}

/** @internal One holder at a time, in all processes that share the store. */
export function mutexKind(driver: LeaseDriver): Kind {
  return { name: 'mutex', driver, group: driver.origin ?? driver, amount: 'all', maxHolders: 1 };
}

/** Which waiters go first: the earliest, the readers or the writers. */
export type ReadWritePolicy = 'fair' | 'readers' | 'writers';

/** Options of a read/write lock. */
export interface ReadWriteLockOptions {
  /** Default `'fair'`: first come, first served. With the other two, a constant stream of one side keeps the other side out. */
  policy?: ReadWritePolicy;
}

/** @internal */
type Drivers = Readonly<Record<'read' | 'write', LeaseDriver>>;

/** Many readers or one writer, in all processes that share the store. */
export interface ReadWriteLock {
  /**
   * The side that many callers may hold at the same time. Its fencing token is that of the last write. A call chain that holds the write lock can also
   * take the read lock, and keep it when it releases the write lock (downgrade).
   */
  readonly read: Lock;
  /** The side that one caller holds alone. A call chain that holds only the read lock cannot take it: it would wait for itself. */
  readonly write: Lock;
}

/** @internal */
export function readWriteKinds(
  { read, write }: Drivers,
  options: ReadWriteLockOptions,
  where: string,
): Readonly<Record<'read' | 'write', Kind>> {
  checkOptions(options, where, READ_WRITE_CHECKS);
  const { policy = 'fair' } = options;
  return {
    read: {
      name: 'read',
      driver: read,
      group: read.origin ?? read,
      amount: 'read',
      maxHolders: 0,
      share(key, reentrant) {
        const written = reentrant ? heldLease(write, key) : undefined;
        written?.assertHeld();
        // The next writer must not get the key while we read on: from now on, because the store may grant the read lock before its answer is here.
        written?.turn.tenure.endsWithTurn();
        return { count: 1, permits: Infinity, rank: policy === 'writers' ? 1 : 0, beside: written?.owner };
      },
    },
    write: {
      name: 'write',
      driver: write,
      group: read.origin ?? read,
      amount: 'write',
      // Readers that go first must not wait for several writers, one after the other.
      maxHolders: policy === 'readers' ? 0 : 1,
      share(key) {
        if (!heldLease(read, key)) return { count: Infinity, permits: Infinity, rank: policy === 'readers' ? 1 : 0 };
        throw configError(
          'DEADLOCK',
          `Lock "${key}": this call chain holds the read lock and asks for the write lock, for which it would wait for itself. ` +
            'Take the write lock first; the read lock can be taken under it.',
          { key },
        );
      },
    },
  };
}

/** The number itself, unless the compiler knows that it is too small. */
type Permitted<Permits extends number> = `${Permits}` extends '0' | `-${string}` ? 'A semaphore has at least one permit' : Permits;

/** Options of a semaphore. */
export interface SemaphoreOptions<Permits extends number = number> {
  /**
   * How many permits there are, from 1 to 1,000,000. A request with another number changes it for all. Leases that exceed a smaller number are kept.
   */
  permits: Permitted<Permits>;
  /** How many permits one lease takes, all or none. Default 1. */
  count?: number;
}

/** Well below the number that stands for the whole key at the stores. */
const MOST_PERMITS = 1_000_000;

/** @internal */
export function semaphoreKind(driver: LeaseDriver, options: SemaphoreOptions, where: string): Kind {
  checkSemaphoreOptions(options, where);
  const { permits, count = 1 } = options;
  return {
    name: 'semaphore',
    driver,
    group: driver.origin ?? driver,
    amount: `${count} permits`,
    maxHolders: Math.floor(permits / count),
    share: () => ({ count, permits, rank: 0 }),
    checkReentry({ key, turn }) {
      const has = turn.tenure.share?.count ?? 0;
      if (count <= has) return;
      throw configError(
        'DEADLOCK',
        `Semaphore "${key}": this call chain holds ${has} permits and asks for ${count}: it could wait for itself. ` +
          'Take all of them at first, or set reentrant: false.',
        { key },
      );
    },
  };
}

/** @internal */
export const READ_WRITE_CHECKS = { policy: oneOf('fair', 'readers', 'writers') };

/** @internal */
export const SEMAPHORE_CHECKS = { permits: integerFrom(1, MOST_PERMITS), count: integerFrom(1) };

/** @throws {LockConfigError} naming the option. */
export function checkSemaphoreOptions(options: SemaphoreOptions, where: string): void {
  checkOptions(options, where, SEMAPHORE_CHECKS, 'permits');
  const { permits, count = 1 } = options;
  if (count <= permits) return;
  throw configError('OPTION', `${where}: "count" must be a whole number from 1 to the number of permits (${permits}), not ${count}.`);
}
