import { Lifecycle } from './core/holding/lifecycle.js';
import { watchdog } from './core/holding/watchdog.js';
import { LatchCalls } from './core/latch/latch-calls.js';
import { checkOptions, defined, integerFrom, ofType, without } from './core/model/check-options.js';
import { LockConfigError, LockLostError, UnsupportedPrimitiveError } from './core/model/errors.js';
import { LockEventEmitter, type LockEvents, type LockListener, type LockLogger } from './core/model/events.js';
import { checkKey } from './core/model/key.js';
import type { Lease } from './core/model/lease.js';
import { completeOptions, USING_CHECKS, type AcquireOptions, type ResolvedOptions, type UsingOptions } from './core/model/options.js';
import type { LockStore } from './core/store/lock-store.js';
import { after } from './core/util/clock.js';
import { processWide } from './core/util/process-wide.js';
import { LockQueues } from './core/waiting/lock-queues.js';
import { CountDownLatch, type CountDownLatchOptions } from './primitives/count-down-latch.js';
import { KeyLock } from './primitives/key-lock.js';
import {
  checkSemaphoreOptions,
  mutexKind,
  READ_WRITE_CHECKS,
  readKind,
  semaphoreKind,
  writeKind,
  type Kind,
  type ReadWriteLockOptions,
  type SemaphoreOptions,
} from './primitives/kinds.js';
import { LeaderElection, type LeaderElectionOptions } from './primitives/leader-election.js';
import type { Lock, NoOptions, OnTimeoutResult } from './primitives/lock.js';
import type { MultiLease } from './primitives/multi-lease.js';
import { MultiLock } from './primitives/multi-lock.js';

/** How long the callers of one process may pass a key on among themselves while another process waits for it. */
export interface LocalQueueOptions {
  /** How many holders in a row, from 1. As many fencing tokens are reserved at a time. Default 32. */
  handOvers?: number;
  /** Milliseconds from the first grant. A longer hold is not cut short. Default 50. */
  time?: number;
}

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

export interface LocksOptions {
  /** Put before every key. Default: nothing. */
  namespace?: string;
  /** For every lock that does not say otherwise; a `signal` is no default. */
  defaults?: Omit<UsingOptions, 'signal'>;
  /** Where lost leases, failed listeners and a lagging event loop are told. Default: the console; `false`: nowhere. */
  logger?: LockLogger | false;
  /** Milliseconds for which {@link Locks.close} waits for running work. Default 10,000. */
  shutdownTimeout?: number;
  /** Default: 32 hand-overs or 50 ms. */
  localQueue?: LocalQueueOptions;
}

const CONSOLE: LockLogger = { warn: (message) => console.warn(message), error: (message) => console.error(message) };

/** More tokens at a time would outrun the clock that they follow. */
const MOST_HAND_OVERS = 1_000_000;
const LOCAL_QUEUE_CHECKS = { handOvers: integerFrom(1, MOST_HAND_OVERS), time: integerFrom(0, MOST_HAND_OVERS) };
const isLogger = (value: object): boolean => 'warn' in value && 'error' in value;
const LOCKS_CHECKS = {
  namespace: ofType('string'),
  defaults: ofType('object'),
  logger: (value: unknown) =>
    value === false || isLogger(Object(value) as object) ? undefined : 'an object with the methods warn and error, or false',
  shutdownTimeout: integerFrom(0),
  localQueue: ofType('object'),
};

/** How many {@link Locks} use a store: the last one that closes, closes it. */
const users = processWide('users', () => new WeakMap<LockStore, number>());

/** All locks of one store. Build one for each store and keep it: `await locks.using('order:42', async (lease) => …)`. */
export class Locks {
  private readonly namespace: string;
  private readonly defaults: ResolvedOptions;
  private readonly shutdownTimeout: number;
  private readonly events: LockEventEmitter;
  private readonly runtime: Lifecycle;
  private readonly queues: LockQueues;
  private latches: LatchCalls | undefined;
  private readonly mutexKind: Kind;
  private closing: Promise<void> | undefined;

  /**
   * @param store such as `redisStore({ url })` or `memoryStore()`.
   * @throws {LockConfigError} when an option is wrong.
   */
  constructor(
    readonly store: LockStore,
    options: LocksOptions = {},
  ) {
    if (typeof store?.mutex?.acquire !== 'function') {
      throw new LockConfigError('Locks need a store, such as redisStore({ url }) from "nestjs-distributed-lock/redis".');
    }
    checkLocksOptions(options);
    this.namespace = options.namespace ?? '';
    this.defaults = completeOptions(options.defaults ?? {});
    this.shutdownTimeout = options.shutdownTimeout ?? 10_000;
    this.events = new LockEventEmitter(options.logger ?? CONSOLE);
    this.runtime = new Lifecycle(this.events, store.requestTimeout);
    this.queues = new LockQueues(this.runtime, { handOvers: 32, time: 50, ...defined(options.localQueue ?? {}) });
    this.mutexKind = mutexKind(store.mutex);
    users.set(store, (users.get(store) ?? 0) + 1);
  }

  /**
   * The lock with this key; nothing is asked of the store yet.
   *
   * @param key 1–512 characters, no control characters, braces only as one hash tag.
   * @throws {LockConfigError} when the key is wrong.
   */
  mutex(key: string): Lock {
    return this.lock(this.mutexKind, key);
  }

  /**
   * The read and the write lock with this key; nothing is asked of the store yet.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no such locks.
   */
  readWriteLock(key: string, options: ReadWriteLockOptions = {}): ReadWriteLock {
    const drivers = this.offered(this.store.readWriteLock, 'read/write locks');
    checkOptions(options, `Lock "${key}"`, READ_WRITE_CHECKS);
    const { policy } = options;
    return { read: this.lock(readKind(drivers, policy), key), write: this.lock(writeKind(drivers, policy), key) };
  }

  /**
   * The semaphore with this key; nothing is asked of the store yet.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no semaphores.
   */
  semaphore(key: string, options: SemaphoreOptions): Lock {
    const driver = this.offered(this.store.semaphore, 'semaphores');
    checkSemaphoreOptions(options, `Semaphore "${key}"`);
    return this.lock(semaphoreKind(driver, options), key);
  }

  /**
   * The count-down latch with this key; nothing is asked of the store yet.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no latches.
   */
  countDownLatch(key: string, options: CountDownLatchOptions = {}): CountDownLatch {
    this.latches ??= new LatchCalls(this.runtime, this.offered(this.store.countDownLatch, 'count-down latches'));
    return new CountDownLatch(this.latches, this.fullKey(key), this.defaults, options);
  }

  /**
   * A candidate for the leadership of this name, whose key is `<name>-leader`; nothing is asked of the store yet. Each call makes another one.
   *
   * @param name as a key for {@link mutex}.
   * @throws {LockConfigError} when the name or an option is wrong.
   */
  leaderElection(name: string, options: LeaderElectionOptions = {}): LeaderElection {
    const mutex = this.lock(this.mutexKind, `${checkKey(name, "A leader election's name")}-leader`);
    return new LeaderElection(mutex, this.runtime, this.defaults, options);
  }

  /**
   * Several locks as one, all or none; nothing is asked of the stores yet.
   *
   * @param locks keys as for {@link mutex}, and locks of these or of other {@link Locks}: mutexes, read and write locks, semaphores. The same lock
   *   twice is one.
   * @throws {LockConfigError} when there is none, a key is wrong, or two of them cannot be held at the same time.
   */
  multiLock(locks: readonly (string | Lock)[]): Lock<MultiLease> {
    if (typeof locks?.map !== 'function') throw new LockConfigError('A multi-lock is made of a list of keys and locks.');
    const all = locks.map((lock) => (typeof lock === 'string' ? this.lock(this.mutexKind, lock) : takeable(lock)));
    return new MultiLock(all, this.defaults);
  }

  /** {@link Lock.acquire} of the mutex with this key. */
  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    try {
      return this.mutex(key).acquire(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** {@link Lock.tryAcquire} of the mutex with this key. */
  async tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null> {
    return this.mutex(key).tryAcquire(options);
  }

  /** {@link Lock.using} of the mutex with this key. */
  async using<T, const O extends UsingOptions = NoOptions>(
    key: string,
    work: (lease: Lease) => T | PromiseLike<T>,
    options?: O,
  ): Promise<T | OnTimeoutResult<O>> {
    return this.mutex(key).using(work, options);
  }

  /** Listens; the returned function stops listening. A listener runs inside the lock's own work: be quick. */
  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void {
    return this.events.on(event, listener);
  }

  /** From now on nobody waits: waiters reject with {@link LockAbortedError}. Free keys and re-entrant calls are still given. */
  stopWaiting(): void {
    this.runtime.stopWaiting();
  }

  /**
   * Stops waiting, waits up to `shutdownTimeout` for running work, aborts and releases what is still held, and closes the store, but no client
   * that you made yourself. Nothing can be acquired any more.
   */
  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private lock(kind: Kind, key: string): KeyLock {
    return new KeyLock(this.queues, kind, this.fullKey(key), this.defaults);
  }

  private fullKey(key: string): string {
    checkKey(key);
    return this.namespace === '' ? key : checkKey(this.namespace + key);
  }

  private offered<T>(driver: T | undefined, what: string): T {
    if (driver) return driver;
    throw new UnsupportedPrimitiveError(`The ${this.store.name} store has no ${what}.`);
  }

  private async shutDown(): Promise<void> {
    this.stopWaiting();
    await within(this.shutdownTimeout, this.runtime.drained());
    this.runtime.close();
    this.queues.close();
    const held = watchdog.tenuresOf(this.runtime).flatMap(({ turn }) => turn.leases);
    await Promise.all(held.map((lease) => lease.revoke(new LockLostError('The lease was released because the locks were closed.'))));
    // Clean-up under way may fail with a broken connection and go out once more over the next one.
    await within(3 * this.store.requestTimeout, this.runtime.quiet());
    const others = (users.get(this.store) ?? 1) - 1;
    users.set(this.store, others);
    if (others === 0) await this.store.close();
  }
}

/** The locks of any copy of this package can be taken. */
function takeable(lock: Lock): KeyLock | MultiLock {
  if (typeof lock === 'object' && lock !== null && 'take' in lock) return lock as KeyLock | MultiLock;
  throw new LockConfigError(`A multi-lock is made of keys and locks, not of ${typeof lock}.`);
}

async function within(timeout: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<void>((resolve) => (timer = after(timeout, resolve)));
  await Promise.race([work, end]);
  clearTimeout(timer);
}

/** @throws {LockConfigError} naming the option. */
function checkLocksOptions(options: LocksOptions): void {
  checkOptions(options ?? null, 'Locks', LOCKS_CHECKS);
  const { namespace = '', defaults, localQueue } = options;
  if (namespace !== '') checkKey(`${namespace}key`, 'Locks: a key with this "namespace"');
  checkOptions(defaults, 'Locks: "defaults"', without(USING_CHECKS, 'signal'));
  checkOptions(localQueue, 'Locks: "localQueue"', LOCAL_QUEUE_CHECKS);
}
