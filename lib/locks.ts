import { after } from './core/util/clock.js';
import { LockConfigError, LockLostError, UnsupportedPrimitiveError } from './core/model/errors.js';
import { LockEventEmitter, type LockEvents, type LockListener, type LockLogger } from './core/model/events.js';
import { checkKey } from './core/model/key.js';
import { Latches } from './core/latch/latches.js';
import type { Lease } from './core/holding/lease.js';
import {
  checkOptions,
  completeOptions,
  USING_OPTIONS,
  type AcquireOptions,
  type ResolvedOptions,
  type UsingOptions,
} from './core/model/options.js';
import { LockQueues, localQueueLimits, type LocalQueueOptions } from './core/waiting/lock-queues.js';
import { Lifecycle } from './core/holding/lifecycle.js';
import type { LockStore } from './core/store/lock-store.js';
import { CountDownLatch, type CountDownLatchOptions } from './primitives/count-down-latch.js';
import type { LeaseLock, NoOptions, OnTimeoutResult } from './primitives/lease-lock.js';
import { LeaderElection, type LeaderElectionOptions } from './primitives/leader-election.js';
import { MultiLock } from './primitives/multi-lock.js';
import { Mutex } from './primitives/mutex.js';
import { ReadWriteLock, type ReadWriteLockOptions } from './primitives/read-write-lock.js';
import { Semaphore, type SemaphoreOptions } from './primitives/semaphore.js';

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

const SLOT = Symbol.for('nestjs-distributed-lock:users');
const shared = globalThis as { [SLOT]?: WeakMap<LockStore, number> };
/** How many {@link Locks} use a store, of any copy of this package: the last one that closes, closes it. */
const users = (shared[SLOT] ??= new WeakMap<LockStore, number>());

/** All locks of one store. Build one for each store and keep it: `await locks.using('order:42', async (lease) => …)`. */
export class Locks {
  private readonly namespace: string;
  private readonly defaults: ResolvedOptions;
  private readonly shutdownTimeout: number;
  private readonly events: LockEventEmitter;
  private readonly runtime: Lifecycle;
  private readonly queues: LockQueues;
  private readonly latches: Latches;
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
    this.queues = new LockQueues(this.runtime, localQueueLimits(options.localQueue, 'Locks'));
    this.latches = new Latches(this.runtime);
    users.set(store, (users.get(store) ?? 0) + 1);
  }

  /**
   * The lock with this key; nothing is asked of the store yet.
   *
   * @param key 1–512 characters, no control characters, braces only as one hash tag.
   * @throws {LockConfigError} when the key is wrong.
   */
  mutex(key: string): Mutex {
    return new Mutex(this.queues, this.store.mutex, this.fullKey(key), this.defaults);
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
    return new ReadWriteLock(this.queues, drivers, this.fullKey(key), this.defaults, options);
  }

  /**
   * The semaphore with this key; nothing is asked of the store yet.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no semaphores.
   */
  semaphore(key: string, options: SemaphoreOptions): Semaphore {
    return new Semaphore(this.queues, this.offered(this.store.semaphore, 'semaphores'), this.fullKey(key), this.defaults, options);
  }

  /**
   * The count-down latch with this key; nothing is asked of the store yet.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no latches.
   */
  countDownLatch(key: string, options: CountDownLatchOptions = {}): CountDownLatch {
    const driver = this.offered(this.store.countDownLatch, 'count-down latches');
    return new CountDownLatch(this.latches, driver, this.fullKey(key), this.defaults, options);
  }

  /**
   * A candidate for the leadership of this name, whose key is `<name>-leader`; nothing is asked of the store yet. Each call makes another one.
   *
   * @param name as a key for {@link mutex}.
   * @throws {LockConfigError} when the name or an option is wrong.
   */
  leaderElection(name: string, options: LeaderElectionOptions = {}): LeaderElection {
    const mutex = this.mutex(`${checkKey(name, "A leader election's name")}-leader`);
    return new LeaderElection(mutex, this.runtime, this.defaults, options);
  }

  /**
   * Several locks as one, all or none; nothing is asked of the stores yet.
   *
   * @param locks keys as for {@link mutex}, and locks of these or of other {@link Locks}: mutexes, read and write locks, semaphores. The same lock
   *   twice is one.
   * @throws {LockConfigError} when there is none, a key is wrong, or two of them cannot be held at the same time.
   */
  multiLock(locks: readonly (string | LeaseLock<Lease> | MultiLock)[]): MultiLock {
    if (typeof locks?.map !== 'function') throw new LockConfigError('A multi-lock is made of a list of keys and locks.');
    const all = locks.map((lock) => (isLock(lock) ? lock : this.mutex(lock)));
    return new MultiLock(all, this.defaults);
  }

  /** {@link Mutex.acquire} */
  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    try {
      return this.mutex(key).acquire(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** {@link Mutex.tryAcquire} */
  async tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null> {
    return this.mutex(key).tryAcquire(options);
  }

  /** {@link Mutex.using} */
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
    const held = [...this.runtime.held];
    await Promise.all(held.map(({ lease }) => lease.revoke(new LockLostError('The lease was released because the locks were closed.'))));
    // Clean-up under way may fail with a broken connection and go out once more over the next one.
    await within(3 * this.store.requestTimeout, this.runtime.quiet());
    const others = (users.get(this.store) ?? 1) - 1;
    users.set(this.store, others);
    if (others === 0) await this.store.close();
  }
}

/** Also one of another copy of this package. */
function isLock<L extends object>(value: string | L): value is L {
  return typeof value === 'object' && value !== null && 'take' in value;
}

async function within(timeout: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<void>((resolve) => (timer = after(timeout, resolve)));
  await Promise.race([work, end]);
  clearTimeout(timer);
}

const LOCKS_OPTIONS = ['namespace', 'defaults', 'logger', 'shutdownTimeout', 'localQueue'];

/** @throws {LockConfigError} naming the option. */
function checkLocksOptions(options: LocksOptions): void {
  if (typeof options !== 'object' || options === null) throw new LockConfigError('Locks: the options must be an object.');
  const unknown = Object.keys(options).find((name) => !LOCKS_OPTIONS.includes(name));
  if (unknown !== undefined) throw new LockConfigError(`Locks: unknown option "${unknown}".`);
  const { namespace = '', defaults, logger = false, shutdownTimeout = 0 } = options;
  if (typeof namespace !== 'string') throw new LockConfigError('Locks: "namespace" must be a string.');
  if (namespace !== '') checkKey(`${namespace}key`, 'Locks: a key with this "namespace"');
  if (logger && (typeof logger.warn !== 'function' || typeof logger.error !== 'function')) {
    throw new LockConfigError('Locks: "logger" must have the methods warn and error, or be false.');
  }
  if (!Number.isSafeInteger(shutdownTimeout) || shutdownTimeout < 0) {
    throw new LockConfigError(`Locks: "shutdownTimeout" must be a whole number of at least 0, not ${String(shutdownTimeout)}.`);
  }
  checkOptions(
    defaults,
    'Locks: "defaults"',
    USING_OPTIONS.filter((name) => name !== 'signal'),
  );
}
