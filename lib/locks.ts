import { OpenStore } from './core/inspect/open-store.js';
import { LatchCalls } from './core/latch/latch-calls.js';
import { checkOptions } from './core/model/check-options.js';
import { LockConfigError, UnsupportedPrimitiveError } from './core/model/errors.js';
import { keyFinders } from './core/model/key-finder.js';
import { checkKey } from './core/model/key.js';
import type { Lease } from './core/model/lease.js';
import type { LocksOptions } from './core/model/locks-options.js';
import { completeOptions, type AcquireOptions, type ResolvedOptions, type UsingOptions } from './core/model/options.js';
import type { LockStore } from './core/store/lock-store.js';
import { CountDownLatch, type CountDownLatchOptions } from './primitives/count-down-latch.js';
import { takeable, type KeyLock } from './primitives/key-lock.js';
import {
  checkSemaphoreOptions,
  mutexKind,
  READ_WRITE_CHECKS,
  readWriteKinds,
  semaphoreKind,
  type Kind,
  type ReadWriteLock,
  type ReadWriteLockOptions,
  type SemaphoreOptions,
} from './primitives/kinds.js';
import { LeaderElection, type LeaderElectionOptions } from './primitives/leader-election.js';
import type { Lock, NoOptions, OnTimeoutResult } from './primitives/lock.js';
import type { MultiLease } from './primitives/multi-lease.js';
import { MultiLock } from './primitives/multi-lock.js';
import { observation, type Observation } from './primitives/observation.js';

/** The locks of one store: `await locks.using('order:42', async (lease) => …)`. Create one for each store, and keep it. */
export class Locks extends OpenStore {
  private readonly defaults: ResolvedOptions;
  private readonly observed: Observation;
  private latches: LatchCalls | undefined;
  private readonly mutexKind: Kind;

  /**
   * @param store such as `redisStore({ url })` or `memoryStore()`.
   * @throws {LockConfigError} when an option is wrong.
   */
  constructor(store: LockStore, options: LocksOptions = {}) {
    super(store, options);
    this.defaults = completeOptions(options.defaults ?? {});
    this.observed = observation(store, this.queues, options);
    this.atEnd.push(() => this.observed.stop());
    this.mutexKind = mutexKind(this.observed.store.mutex);
    this.begin(options);
  }

  /**
   * The lock with this key. No request is sent.
   *
   * @param key 1–512 characters, no control characters, braces only as one hash tag.
   * @throws {LockConfigError} when the key is wrong.
   */
  mutex(key: string): Lock {
    return this.lock(this.mutexKind, key);
  }

  /**
   * The read and the write lock with this key. No request is sent.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no such locks.
   */
  readWriteLock(key: string, options: ReadWriteLockOptions = {}): ReadWriteLock {
    const drivers = this.offered(this.observed.store.readWriteLock, 'read/write locks');
    checkOptions(options, `Lock "${key}"`, READ_WRITE_CHECKS);
    const { read, write } = readWriteKinds(drivers, options.policy);
    return { read: this.lock(read, key), write: this.lock(write, key) };
  }

  /**
   * The semaphore with this key. No request is sent.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no semaphores.
   */
  semaphore(key: string, options: SemaphoreOptions): Lock {
    const driver = this.offered(this.observed.store.semaphore, 'semaphores');
    checkSemaphoreOptions(options, `Semaphore "${key}"`);
    return this.lock(semaphoreKind(driver, options), key);
  }

  /**
   * The count-down latch with this key. No request is sent.
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
   * A new candidate for the leadership of this name. Its key is `<name>-leader`. No request is sent.
   *
   * @param name as a key for {@link mutex}.
   * @throws {LockConfigError} when the name or an option is wrong.
   */
  leaderElection(name: string, options: LeaderElectionOptions = {}): LeaderElection {
    const mutex = takeable(this.mutex(`${checkKey(name, "A leader election's name")}-leader`));
    return new LeaderElection(mutex, this.runtime, this.defaults, options);
  }

  /**
   * Several locks as one, all or none. No request is sent.
   *
   * @param locks keys as for {@link mutex}, and locks of any {@link Locks}: mutexes, read and write locks, semaphores. Duplicates are ignored.
   * @throws {LockConfigError} when the list is empty, a key is wrong, or two locks cannot be held at the same time.
   */
  multiLock(locks: readonly (string | Lock)[]): Lock<MultiLease> {
    if (typeof locks?.map !== 'function') throw new LockConfigError('A multi-lock is made of a list of keys and locks.');
    const all = locks.map((lock) => takeable(typeof lock === 'string' ? this.mutex(lock) : lock));
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

  /**
   * The key that a call of a decorated method takes, namespace included: for scripts, tests and redis-cli. Only in a Nest app.
   *
   * @param args those of the call. Of several locks on the method, the uppermost one of this store counts.
   * @throws {LockConfigError} if the method has no lock of this store, or its key cannot be made of these arguments.
   */
  keyOf<T extends object, M extends keyof T & (string | symbol)>(
    type: abstract new (...args: never[]) => T,
    method: M,
    ...args: T[M] extends (...args: infer A) => unknown ? A : never
  ): string {
    const find = keyFinders.get(this);
    if (!find) throw new LockConfigError('keyOf: only the Locks of a Nest app know decorated methods.');
    return find(type, method, args);
  }

  private lock(kind: Kind, key: string): KeyLock {
    return new this.observed.Lock(this.queues, kind, this.fullKey(key), this.defaults);
  }

  private fullKey(key: string): string {
    checkKey(key);
    return this.namespace === '' ? key : checkKey(this.namespace + key);
  }

  private offered<T>(driver: T | undefined, what: string): T {
    if (driver) return driver;
    throw new UnsupportedPrimitiveError(`The ${this.store.name} store has no ${what}.`);
  }
}
