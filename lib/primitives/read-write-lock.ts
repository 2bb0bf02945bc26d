import { inspect } from 'node:util';
import type { LeaseDriver, Share } from '../core/store/lease-driver.js';
import { LockConfigError } from '../core/model/errors.js';
import { heldLease } from '../core/holding/call-chain.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import { checkOptions, type ResolvedOptions } from '../core/model/options.js';
import { StoreLock } from './store-lock.js';

/** Who goes first of those who wait: whoever came first, the readers or the writers. */
export type ReadWritePolicy = 'fair' | 'readers' | 'writers';

export interface ReadWriteLockOptions {
  /** Default `'fair'`: first come, first served, so that neither side starves. With the other two, a stream of one side keeps the other one out. */
  policy?: ReadWritePolicy;
}

type Drivers = Readonly<Record<'read' | 'write', LeaseDriver>>;

/** Many readers or one writer, in all processes that share the store. */
export class ReadWriteLock {
  /**
   * The readers' side, which many hold at a time. Under its own write lock a call chain may read too, and keep the read lock when it gives
   * the write lock back (downgrade).
   */
  readonly read: ReadLock;
  /** The writers' side, which one holds alone. A call chain that only reads must not ask for it: it would wait for itself. */
  readonly write: WriteLock;

  /** @internal Use {@link Locks.readWriteLock}. */
  constructor(queues: LockQueues, drivers: Drivers, key: string, defaults: ResolvedOptions, options: ReadWriteLockOptions) {
    const { policy = 'fair' } = checkReadWriteOptions(options, `Lock "${key}"`);
    this.read = new ReadLock(queues, drivers, key, defaults, policy === 'writers' ? 1 : 0);
    this.write = new WriteLock(queues, drivers, key, defaults, policy === 'readers' ? 1 : 0);
  }
}

/** What both sides have in common: they are two ways to hold one key. */
abstract class Side extends StoreLock {
  constructor(
    queues: LockQueues,
    protected readonly drivers: Drivers,
    private readonly side: 'read' | 'write',
    key: string,
    defaults: ResolvedOptions,
    protected readonly rank: 0 | 1,
  ) {
    super(queues, drivers[side], key, defaults);
  }

  protected override get group(): object {
    return this.drivers;
  }

  protected override get amount(): string {
    return this.side;
  }
}

/** The side of a {@link ReadWriteLock} that many hold at a time. Its fencing token is that of the last write. */
export class ReadLock extends Side {
  /** @internal */
  constructor(queues: LockQueues, drivers: Drivers, key: string, defaults: ResolvedOptions, rank: 0 | 1) {
    super(queues, drivers, 'read', key, defaults, rank);
  }

  protected override share({ reentrant }: ResolvedOptions): Share {
    const written = reentrant ? heldLease(this.drivers.write, this.key) : undefined;
    written?.assertHeld();
    return { count: 1, permits: Infinity, rank: this.rank, beside: written?.owner };
  }
}

/** The side of a {@link ReadWriteLock} that one holds alone. */
export class WriteLock extends Side {
  /** @internal */
  constructor(queues: LockQueues, drivers: Drivers, key: string, defaults: ResolvedOptions, rank: 0 | 1) {
    super(queues, drivers, 'write', key, defaults, rank);
  }

  protected override share(): Share {
    if (!heldLease(this.drivers.read, this.key)) return { count: Infinity, permits: Infinity, rank: this.rank };
    throw new LockConfigError(
      `Lock "${this.key}": this call chain holds the read lock and asks for the write lock, for which it would wait for itself. ` +
        'Take the write lock first; the read lock can be taken under it.',
      { key: this.key },
    );
  }
}

/** @throws {LockConfigError} naming the option. */
export function checkReadWriteOptions(options: ReadWriteLockOptions, where: string): ReadWriteLockOptions {
  checkOptions(options, where, ['policy']);
  const { policy = 'fair' } = options;
  if (!['fair', 'readers', 'writers'].includes(policy)) {
    throw new LockConfigError(`${where}: "policy" must be "fair", "readers" or "writers", not ${inspect(policy)}.`);
  }
  return options;
}
