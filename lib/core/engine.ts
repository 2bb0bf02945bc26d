import { Lifecycle } from './holding/lifecycle.js';
import { watchdog } from './holding/watchdog.js';
import { defined } from './model/check-options.js';
import { configError, LockLostError } from './model/errors.js';
import { LockEventEmitter } from './model/events.js';
import { checkKey } from './model/key.js';
import { CONSOLE, LockLog } from './model/lock-log.js';
import { checkLocksOptions, type LocksOptions } from './model/locks-options.js';
import { completeOptions, type ResolvedOptions } from './model/options.js';
import { ownerIds } from './model/owner.js';
import { PastEvents } from './model/past-events.js';
import { currentOf, type LockStore } from './store/lock-store.js';
import { StoreWatch } from './store/store-watch.js';
import { isSettledWithin, now } from './util/clock.js';
import { processWide } from './util/process-wide.js';
import { LockQueues } from './waiting/lock-queues.js';

/** How many {@link Locks} use each store: the last one closes it. */
const users = processWide('users', () => new WeakMap<LockStore, number>());

/** The common parts of all locks of one {@link Locks}: the store, its events and its log, the callers that wait, and the end. */
export class Engine {
  readonly store: LockStore;
  readonly namespace: string;
  /** For all options that a call leaves out. */
  readonly defaults: ResolvedOptions;
  readonly runtime: Lifecycle;
  readonly queues: LockQueues;
  readonly storeWatch: StoreWatch;
  readonly log: LockLog;
  readonly past: PastEvents;
  /** Called one after the other when everything is released, before the store is closed. */
  readonly atEnd: (() => unknown)[] = [];
  private readonly shutdownTimeout: number;
  private closing: Promise<void> | undefined;

  /** Nothing is opened yet that would have to be closed. */
  constructor(given: LockStore, options: LocksOptions, reportSlowWaits: () => Promise<number>) {
    if (typeof given?.mutex?.acquire !== 'function') {
      throw configError('OPTION', 'Locks need a store, such as redisStore({ url }) from "nestjs-distributed-lock/redis".');
    }
    checkLocksOptions(options);
    const store = (this.store = currentOf(given));
    const { namespace = '', app, localQueue = {}, slowWait = 30_000, shutdownTimeout = 10_000 } = options;
    this.namespace = namespace;
    this.defaults = completeOptions(options.defaults ?? {});
    this.shutdownTimeout = shutdownTimeout;
    this.log = new LockLog(options.logger ?? CONSOLE, options.silence);
    this.storeWatch = new StoreWatch(store, namespace, this.log);
    const events = new LockEventEmitter(this.log);
    this.past = new PastEvents(events);
    this.runtime = new Lifecycle(events, store.requestTimeout, ownerIds(app), this.storeWatch);
    this.queues = new LockQueues(this.runtime, { handOvers: 512, time: 50, ...defined(localQueue) }, slowWait, reportSlowWaits);
  }

  /** To be called when all options are known to be right. */
  begin(): void {
    const { store } = this;
    this.storeWatch.begin();
    users.set(store, (users.get(store) ?? 0) + 1);
  }

  /** Passes on what operators ask. Where the answers cannot be loaded, a process has none, and all else goes on. */
  hearOperators(load: () => Promise<{ receive(topic: 'ops' | 'revoke', text: string): unknown }>): void {
    const { bus, mutex } = this.store;
    if (!bus) return;
    this.runtime.openInbox = () => void (mutex.wakeUps ?? bus).open(...this.runtime.events.ofInbox);
    const none = (): undefined => undefined;
    const listening = (['ops', 'revoke'] as const).map((topic) =>
      bus.listen(topic, (text) => void load().then((responder) => responder.receive(topic, text), none)),
    );
    this.atEnd.push(() => listening.forEach((each) => void each.then((stop) => stop())));
  }

  /** The key as the store knows it. @throws {LockConfigError} when the key is wrong. */
  fullKey(key: string): string {
    checkKey(key);
    return this.namespace === '' ? key : checkKey(this.namespace + key);
  }

  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private async end(): Promise<void> {
    const { store, runtime, queues } = this;
    this.storeWatch.stop();
    runtime.stopWaiting();
    await isSettledWithin(this.shutdownTimeout, runtime.ended('acquire', 'body'));
    runtime.close();
    queues.close();
    await this.revokeAll();
    await isSettledWithin(runtime.cleanUpEnd - now(), runtime.ended('acquire', 'cleanUp'));
    for (const end of this.atEnd) await end();
    const others = (users.get(store) ?? 1) - 1;
    users.set(store, others);
    if (others === 0) await store.close();
  }

  /** Releases the leases that are left when the locks are closed. Leases that guard no body should have been released before. */
  private async revokeAll(): Promise<void> {
    const held = watchdog.tenuresOf(this.runtime).flatMap(({ turn }) => turn.leases);
    const keys = [...new Set(held.filter(({ guardsBody }) => !guardsBody).map(({ key }) => key))];
    if (keys.length > 0) {
      const names = keys.map((key) => `"${key}"`).join(', ');
      const line = `Closed while leases were held that nobody had released: ${names}. Use \`await using\`, or release() in a finally.`;
      this.log.warn('NDL_NOT_RELEASED', line);
    }
    const line = 'The lease was released because the locks were closed.';
    await Promise.all(held.map((lease) => lease.revoke(new LockLostError(line, { key: lease.key }))));
  }
}
