import { Engine } from './core/engine.js';
import { LatchDriverCalls } from './latch/latch-driver-calls.js';
import { configError } from './core/model/errors.js';
import type { DoctorOptions, DoctorReport, LocksHealth } from './core/model/doctor-report.js';
import type { LockEvents, LockListener } from './core/model/events.js';
import { checkKey } from './core/model/key.js';
import type { ForceOptions, ForceReply, KeyEvent, KeyName, KeyReport, ListOptions, WatchOptions } from './core/model/key-report.js';
import type { Lease, MultiLease } from './core/model/lease.js';
import type { LocksOptions } from './core/model/locks-options.js';
import type { LockLog } from './core/model/lock-log.js';
import type { AcquireOptions, UsingOptions } from './core/model/options.js';
import { readTicket } from './core/model/ticket.js';
import { offered, type LockStore } from './core/store/lock-store.js';
import { promised } from './core/util/promised.js';
import { observed } from './core/telemetry/observed-store.js';
import type { Operator } from './operate/operator.js';
import { waitGraph, type Deadlock } from './operate/wait-graph.js';
import { CountDownLatch, type CountDownLatchOptions } from './latch/count-down-latch.js';
import { KeyLock, takeable } from './primitives/key-lock.js';
import {
  mutexKind,
  readWriteKinds,
  semaphoreKind,
  type Kind,
  type ReadWriteLock,
  type ReadWriteLockOptions,
  type SemaphoreOptions,
} from './primitives/kinds.js';
import { LeaderElection, type LeaderElectionOptions } from './primitives/leader-election.js';
import type { Lock, NoOptions, OnTimeoutResult } from './primitives/lock.js';
import { MultiLock } from './primitives/multi-lock.js';

/** The locks of one store: `await locks.using('order:42', async (lease) => …)`. Create one for each store, and keep it. */
export class Locks {
  /** The one that was given; if other `Locks` have closed that, another like it. */
  readonly store: LockStore;
  // The published types leave out what is internal, so that a plain object can stand for `Locks` in a test.
  /** @internal */
  private readonly engine: Engine;
  /** @internal The store whose drivers are asked: with telemetry, they measure. */
  private readonly observed: LockStore;
  /** @internal */
  private readonly mutexKind: Kind;
  /** @internal Finds the key that a call of a decorated method takes. The Locks of a Nest app have one. */
  keyFinder: ((type: never, method: string | symbol, args: readonly unknown[]) => string) | undefined;
  /** @internal */
  private latches: LatchDriverCalls | undefined;
  /** @internal */
  private loading: Promise<Operator> | undefined;

  /**
   * Nothing is sent before the first call. @param store such as `redisStore({ url })` or `memoryStore()`.
   * @throws {LockConfigError} when an option is wrong.
   */
  constructor(store: LockStore, options: LocksOptions = {}) {
    this.engine = new Engine(store, options, async () => (await this.operator()).slowWaits.report());
    this.store = this.engine.store;
    this.observed = observed(this.engine, options.telemetry);
    this.mutexKind = mutexKind(this.observed.mutex);
    this.engine.begin();
    this.engine.hearOperators(async () => (await this.operator()).responder);
    this.engine.atEnd.push(async () => (await this.loading?.catch(() => undefined))?.responder.close());
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
    const { store, observed } = this;
    const { read, write } = readWriteKinds(offered(store, observed.readWriteLock, 'read/write locks'), options, `Lock "${key}"`);
    return { read: this.lock(read, key), write: this.lock(write, key) };
  }

  /**
   * The semaphore with this key. No request is sent.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no semaphores.
   */
  semaphore<Permits extends number>(key: string, options: SemaphoreOptions<Permits>): Lock {
    const { store, observed } = this;
    return this.lock(semaphoreKind(offered(store, observed.semaphore, 'semaphores'), options, `Semaphore "${key}"`), key);
  }

  /**
   * The count-down latch with this key. No request is sent.
   *
   * @param key as for {@link mutex}.
   * @throws {LockConfigError} when the key or an option is wrong.
   * @throws {UnsupportedPrimitiveError} when the store has no latches.
   */
  countDownLatch(key: string, options: CountDownLatchOptions = {}): CountDownLatch {
    this.latches ??= new LatchDriverCalls(this.engine.runtime, offered(this.store, this.store.countDownLatch, 'count-down latches'));
    return new CountDownLatch(this.latches, this.engine.fullKey(key), this.engine.defaults, options);
  }

  /**
   * A new candidate for the leadership of this name. Its key is `<name>-leader`. No request is sent.
   *
   * @param name as a key for {@link mutex}.
   * @throws {LockConfigError} when the name or an option is wrong.
   */
  leaderElection(name: string, options: LeaderElectionOptions = {}): LeaderElection {
    const mutex = takeable(this.mutex(`${checkKey(name, "A leader election's name")}-leader`));
    return new LeaderElection(mutex, this.engine.runtime, this.engine.defaults, options, name);
  }

  /**
   * Several locks as one, all or none. No request is sent.
   *
   * @param locks keys as for {@link mutex}, and locks of any {@link Locks}: mutexes, read and write locks, semaphores. Duplicates are ignored.
   * @throws {LockConfigError} when the list is empty, a key is wrong, or two locks cannot be held at the same time.
   */
  multiLock(locks: readonly (string | Lock)[]): Lock<MultiLease> {
    return new MultiLock(locks, (key) => this.mutex(key), this.engine.defaults);
  }

  /** Waits for the mutex with this key, and takes it, as {@link Lock.acquire} does. */
  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    return promised(() => this.mutex(key).acquire(options));
  }

  /** Tries once to take the mutex with this key, as {@link Lock.tryAcquire} does; resolves to `null` if it is taken. */
  tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null> {
    return promised(() => this.mutex(key).tryAcquire(options));
  }

  /**
   * Takes the mutex with this key, runs the work and releases the key. The work's result or error is passed on unchanged.
   *
   * @throws {LockTimeoutError} when the wait timeout ends and `onTimeout` is `'throw'`; {@link StoreError}; {@link LockAbortedError}.
   * @throws {LockLostError} with the work's `result`, when the lease was lost while the work ran, unless `onLost` is `'ignore'`.
   */
  using<T, const O extends UsingOptions = NoOptions>(
    key: string,
    work: (lease: Lease) => T | PromiseLike<T>,
    options?: O,
  ): Promise<T | OnTimeoutResult<O>> {
    return promised(() => this.mutex(key).using(work, options));
  }

  /**
   * Takes over the lease that another process has handed over: once, the first one to ask. It has a larger fencing token, and is renewed and released as
   * one of {@link acquire}.
   *
   * @param ticket the result of `lease.handOver()`. The key is that of the ticket, whatever the namespace.
   * @throws {LockLostError} when it was adopted or released before, or has ended; {@link StoreError} when the wait timeout ends in an outage:
   *   the ticket can be adopted later.
   * @throws {LockConfigError} when it is not a ticket; {@link UnsupportedPrimitiveError} when the store cannot do that.
   */
  adopt(ticket: string, options?: AcquireOptions): Promise<Lease> {
    const { queues, defaults } = this.engine;
    return promised(() => {
      const read = readTicket(ticket);
      return new KeyLock(queues, this.mutexKind, read.key, defaults).adopt(read, options);
    });
  }

  /**
   * The key that a call of a decorated method takes, namespace included: for scripts, tests and redis-cli. Only in a Nest app.
   *
   * @param args those of the call. The uppermost one of several locks of this store on the method counts.
   * @throws {LockConfigError} if the method has no lock of this store, or its key cannot be made of these arguments.
   */
  keyOf<T extends object, M extends keyof T & (string | symbol)>(
    type: abstract new (...args: never[]) => T,
    method: M,
    ...args: T[M] extends (...args: infer A) => unknown ? A : never
  ): string {
    const find = this.keyFinder;
    if (!find) throw configError('MODULE', 'keyOf: only the Locks of a Nest app know decorated methods.');
    return find(type as never, method, args);
  }

  /**
   * A report about a key by the store and the processes that use it: its holders, since when and for what, and its waiters. It changes nothing. Processes
   * that have neither waited nor renewed a lease, or hang, do not answer; the report then has what the store knows.
   *
   * @throws {StoreError} when the store does not answer; {@link UnsupportedPrimitiveError} when it cannot be inspected.
   */
  async inspect(key: KeyName): Promise<KeyReport> {
    return (await this.operator()).inspect(key);
  }

  /**
   * Finds the keys that are held or waited for, among those that were used within the last hour. To be used by hand: it reads the names of all keys of
   * the store, a thousand at a time.
   *
   * @throws as {@link inspect}, also when a table of your own has no `keys`; {@link LockAbortedError} when `signal` aborts.
   */
  async *list(options?: ListOptions): AsyncIterable<KeyReport> {
    yield* (await this.operator()).list(options);
  }

  /**
   * The events that operators ask for afterwards, of all processes that have waited for a key, or renewed a lease: losses, timeouts, failures, forced
   * releases, skipped calls. First the last 200 of each process, then those to come, once a second.
   *
   * @throws {UnsupportedPrimitiveError} where processes receive no messages, as on MySQL.
   */
  async *watch(options?: WatchOptions): AsyncIterable<KeyEvent> {
    yield* (await this.operator()).watch(options);
  }

  /**
   * Frees a key that is stuck. The holder's signal aborts, and it has `grace` milliseconds to end its work; until then no other caller gets the key.
   * Then the key is taken by force, as it is from a process that does not answer for a second. The next waiter may start before the old holder has
   * stopped: only a fencing token keeps the writes of the old holder out.
   *
   * @throws as {@link inspect}; {@link LockConfigError} when several hold the key and no `owner` is given, or when the value was not written by a lock.
   * @throws {UnsupportedPrimitiveError} for a count-down latch.
   */
  async forceRelease(key: KeyName, options: ForceOptions): Promise<ForceReply> {
    return (await this.operator()).forceRelease(key, options);
  }

  /** The deadlocks among keys, as the function {@link waitGraph} finds them. */
  waitGraph(reports: Iterable<KeyReport>): Deadlock[] {
    return waitGraph(reports);
  }

  /**
   * Examines the store: whether its settings, its clock and its server can lose locks, whether this user may do all that locks need, and how long a
   * request takes. It takes about as long as `probe`, and tries a lock on a key of its own. For use by hand, in a start-up check or in a test.
   *
   * @throws {StoreError} when the store cannot be reached, or refuses everything.
   * @throws {LockConfigError} when an option is wrong.
   */
  async doctor(options?: DoctorOptions): Promise<DoctorReport> {
    return (await this.operator()).doctor(options);
  }

  /**
   * For readiness probes: asks the store once, and changes nothing. Where the store has refused requests since it granted a lock, it takes a lock of its
   * own for a moment: only that shows whether locks are granted again.
   *
   * @param within milliseconds to wait for the answer. Default: `requestTimeout`.
   */
  async health(within = this.store.requestTimeout): Promise<LocksHealth> {
    return (await this.operator()).health(within);
  }

  /**
   * Asks the store once, changes nothing, and writes a line to the log: what the store is, or why it cannot be reached. A Nest app does so at its start.
   *
   * @param name of the store in that line. @throws {StoreError} within `requestTimeout`, when the store does not answer, or refuses.
   */
  checkStore(name?: string): Promise<void> {
    return this.engine.storeWatch.check(name);
  }

  /** @internal */
  get log(): LockLog {
    return this.engine.log;
  }

  /** Adds a listener; the returned function removes it. Listeners are called synchronously and should be quick. */
  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void {
    return this.engine.runtime.events.on(event, listener);
  }

  /** From now on only calls under a lock wait: others reject with {@link LockAbortedError}. Free keys and re-entrant calls still succeed. */
  stopWaiting(): void {
    this.engine.runtime.stopWaiting();
  }

  /**
   * Stops waiting, waits up to `shutdownTimeout` for running work, aborts and releases what is still held, and closes the store, but no client that
   * was passed in. No key can be acquired any more.
   */
  close(): Promise<void> {
    return this.engine.close();
  }

  /** @internal */
  private lock(kind: Kind, key: string): KeyLock {
    return new KeyLock(this.engine.queues, kind, this.engine.fullKey(key), this.engine.defaults);
  }

  /** @internal The answers to operators, loaded by the first question. */
  operator(): Promise<Operator> {
    this.loading ??= import('./operate/operator.js').then(({ Operator }) => new Operator(this.engine));
    return this.loading;
  }
}
