import { examine } from '../doctor/doctor.js';
import { Lifecycle } from '../holding/lifecycle.js';
import { defined } from '../model/check-options.js';
import type { DoctorOptions, DoctorReport } from '../model/doctor-report.js';
import { LockConfigError } from '../model/errors.js';
import { LockEventEmitter, type LockEvents, type LockListener } from '../model/events.js';
import type { ForceOptions, ForceReply, KeyEvent, KeyName, KeyReport, ListOptions, WatchOptions } from '../model/key-report.js';
import { CONSOLE, LockLog } from '../model/lock-log.js';
import { checkLocksOptions, type LocksOptions } from '../model/locks-options.js';
import { ownerIds } from '../model/owner.js';
import type { LockStore } from '../store/lock-store.js';
import { joinStore, leaveStore } from '../store/store-users.js';
import { StoreWatch } from '../store/store-watch.js';
import { healthOf, type LocksHealth } from '../waiting/health.js';
import { LockQueues } from '../waiting/lock-queues.js';
import { shutDown } from '../waiting/shut-down.js';
import { Inspection } from './inspection.js';
import { waitGraph, type Deadlock } from './wait-graph.js';

/**
 * A store that is open for locks: their events, its state, and the questions of operators.
 */
export abstract class OpenStore {
  protected readonly namespace: string;
  protected readonly runtime: Lifecycle;
  protected readonly queues: LockQueues;
  /** Called when everything is released, before the store is closed. */
  protected readonly atEnd: (() => void)[] = [];
  private readonly shutdownTimeout: number;
  private readonly inspection: Inspection;
  private readonly storeWatch: StoreWatch;
  private closing: Promise<void> | undefined;

  protected constructor(
    readonly store: LockStore,
    options: LocksOptions,
  ) {
    if (typeof store?.mutex?.acquire !== 'function') {
      throw new LockConfigError('Locks need a store, such as redisStore({ url }) from "nestjs-distributed-lock/redis".');
    }
    checkLocksOptions(options);
    const { namespace = '', app, logger = CONSOLE, logKeys, localQueue = {}, slowWait = 30_000, shutdownTimeout = 10_000 } = options;
    this.namespace = namespace;
    this.shutdownTimeout = shutdownTimeout;
    const log = new LockLog(logger, logKeys);
    this.storeWatch = new StoreWatch(store, namespace, log);
    this.runtime = new Lifecycle(new LockEventEmitter(log), store.requestTimeout, ownerIds(app), this.storeWatch);
    this.queues = new LockQueues(this.runtime, { handOvers: 32, time: 50, ...defined(localQueue) }, slowWait);
    this.inspection = new Inspection(this.queues, store, namespace);
  }

  /** To be called when all options are known to be right: until then nothing is opened that would have to be closed. */
  protected begin({ visible }: LocksOptions): void {
    const { store } = this;
    if (visible) void store.bus?.open(...this.runtime.events.ofInbox);
    this.storeWatch.begin();
    joinStore(store);
  }

  /**
   * What the store and the processes that use it know of a key: its holders, since when and for what, and its waiters. It changes nothing. Processes
   * that have never waited, or hang, do not answer; the report then has what the store knows.
   *
   * @throws {StoreError} when the store does not answer.
   * @throws {UnsupportedPrimitiveError} when the store cannot be inspected.
   */
  async inspect(key: KeyName): Promise<KeyReport> {
    return this.inspection.inspect(key);
  }

  /**
   * Finds the keys that are held or waited for, among those that were used within the last hour. To be used by hand: it reads the names of all keys of
   * the store, a thousand at a time.
   *
   * @throws as {@link inspect}, also when a table of your own has no `keys`; {@link LockAbortedError} when `signal` aborts.
   */
  list(options?: ListOptions): AsyncIterable<KeyReport> {
    return this.inspection.list(options);
  }

  /**
   * What happens to keys in all processes that have waited, or are `visible`: taken, handed over, released, lost… Live only, sent five times a second.
   *
   * @throws {UnsupportedPrimitiveError} where processes receive no messages, as on MySQL.
   */
  watch(options?: WatchOptions): AsyncIterable<KeyEvent> {
    return this.inspection.watch(options);
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
    return this.inspection.forceRelease(key, options);
  }

  /** The deadlocks among keys, as the function {@link waitGraph} finds them. */
  waitGraph(reports: Iterable<KeyReport>): Deadlock[] {
    return waitGraph(reports);
  }

  /** Adds a listener; the returned function removes it. Listeners are called synchronously and should be quick. */
  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void {
    return this.runtime.events.on(event, listener);
  }

  /**
   * Asks the store once, changes nothing, and writes a line to the log: what the store is, or why it cannot be reached. A Nest app does so at its start.
   *
   * @param name of the store in that line.
   * @throws {StoreError} within `requestTimeout`, when the store does not answer, or refuses.
   */
  checkStore(name?: string): Promise<void> {
    return this.storeWatch.check(name);
  }

  /**
   * Examines the store: whether its settings, its clock and its server can lose locks, whether this user may do all that locks need, and how long a
   * request takes. It takes about as long as `probe`, and tries a lock on a key of its own. For use by hand, in a start-up check or in a test.
   *
   * @throws {StoreError} when the store cannot be reached, or refuses everything.
   * @throws {LockConfigError} when an option is wrong.
   */
  async doctor(options?: DoctorOptions): Promise<DoctorReport> {
    this.runtime.assertOpen('doctor');
    return examine(this.store, this.namespace, () => this.runtime.createOwner(), options);
  }

  /**
   * For readiness probes: asks the store once, and changes nothing. Where the store has refused requests since it granted a lock, it takes a lock of its
   * own for a moment: only that shows whether locks are granted again.
   *
   * @param within milliseconds to wait for the answer. Default: `requestTimeout`.
   */
  health(within = this.store.requestTimeout): Promise<LocksHealth> {
    return healthOf(this.store, this.queues, this.namespace, within);
  }

  /** From now on no call waits: waiters reject with {@link LockAbortedError}. Free keys and re-entrant calls still succeed. */
  stopWaiting(): void {
    this.runtime.stopWaiting();
  }

  /**
   * Stops waiting, waits up to `shutdownTimeout` for running work, aborts and releases what is still held, and closes the store, but no client that
   * was passed in. No key can be acquired any more.
   */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    this.storeWatch.stop();
    await shutDown(this.queues, this.store, this.shutdownTimeout);
    await this.inspection.desk.close();
    for (const end of this.atEnd) end();
    await leaveStore(this.store);
  }
}
