import type { LockEvent, LockEvents, LockKindName } from '../core/model/events.js';
import { CONSOLE, LockLog } from '../core/model/lock-log.js';
import type { LockStore } from '../core/store/lock-store.js';
import { after, now } from '../core/util/clock.js';
import { Locks } from '../locks.js';
import type { Lock } from '../primitives/lock.js';
import { fakeClock, type FakeClock } from './fake-clock.js';
import { faultsOf, innerOf } from './faulty.store.js';
import type { LockFaults } from './lock-faults.js';

/** An event of a {@link Locks}, with its name and its time on the monotonic clock, in milliseconds. */
export type RecordedEvent = { [E in keyof LockEvents]: LockEvents[E] & { readonly event: E; readonly at: number } }[keyof LockEvents];

/** One holding of a key. Times are milliseconds on the monotonic clock. */
export interface Holding extends LockEvent {
  readonly owner: string;
  readonly fencingToken: number | null;
  /** How long its caller waited for it. */
  readonly waited: number;
  readonly since: number;
  readonly state: 'held' | 'released' | 'handedOver' | 'lost';
}

/** How {@link LockProbe.holdElsewhere} holds. */
export interface ElsewhereOptions {
  /** Milliseconds after which it is released. Default: it is held until `release()`. */
  for?: number;
  /** The first part of the holder's id, which errors show. Default `'elsewhere'`. */
  owner?: string;
  /** The kind of lock. Default `'mutex'`. */
  kind?: LockKindName;
  /** How many permits a semaphore has. Default 1. */
  permits?: number;
}

/** A key that is held as another process would hold it. It works with `await using`. */
export interface ElsewhereLease extends AsyncDisposable {
  /** The holder's id: what `LockTimeoutError.holder` shows. */
  readonly owner: string;
  /** Releases the key; repeated calls do nothing. */
  release(): Promise<void>;
}

type Writable<T> = { -readonly [P in keyof T]: T[P] };
interface Entry extends Writable<Holding> {
  /** Numbers of the events at which it began and ended. */
  readonly from: number;
  to: number;
  readonly clock: FakeClock | undefined;
}

const EVENTS: Record<keyof LockEvents, true> = {
  acquired: true,
  waiting: true,
  released: true,
  releasedEarly: true,
  passedOn: true,
  handedOver: true,
  timeout: true,
  skipped: true,
  aborted: true,
  failed: true,
  renewed: true,
  lost: true,
  forced: true,
  unknown: true,
  lag: true,
};

/** Stores whose servers, or other processes, know no fake timers. */
const REAL_TIME = ['redis', 'postgres', 'mysql', 'etcd', 'zookeeper', 'file', 'quorum'];

const probes = new Set<LockProbe>();

/** The probes whose locks may still be open. */
export function openProbes(): Iterable<LockProbe> {
  return probes;
}

/** Records what locks do, for the assertions of a test. `module.get(LockProbe)` with a testing module; without Nest `new LockProbe(locks)`. */
export class LockProbe {
  private readonly all: Locks[] = [];
  private readonly stops: (() => void)[] = [];
  private recorded: RecordedEvent[] = [];
  private entries: Entry[] = [];
  private count = 0;
  private isWarned = false;

  constructor(...locks: Locks[]) {
    for (const each of locks) this.watch(each);
  }

  /** All that has happened, the first event first. Renewals are counted in {@link renewals} only: there are thousands of them. */
  get events(): readonly RecordedEvent[] {
    return this.recorded;
  }

  /** How many renewals the store has answered. */
  renewals = 0;

  /** All holdings, those of the past too, in the order of their beginning. */
  get holdings(): readonly Holding[] {
    return this.entries;
  }

  /** The holdings that have not ended. */
  get held(): readonly Holding[] {
    return this.entries.filter(({ state }) => state === 'held');
  }

  /**
   * The faults of the watched store.
   *
   * @throws {Error} if that is no `faultyStore()`. That of a testing module always is one.
   */
  get faults(): LockFaults {
    const faults = faultsOf(this.watched[0].store);
    if (!faults) throw new Error('LockProbe.faults: the store has none. Wrap it: faultyStore(store).');
    return faults;
  }

  /** The key that a call of a decorated method takes: `locks.keyOf(StockService, 'reduce', 'apple')`. */
  keyOf: Locks['keyOf'] = (...call) => {
    for (const locks of this.watched.slice(1)) {
      try {
        return locks.keyOf(...call);
      } catch (error) {
        if (!String(error).includes('LOCK_CONFIG_MODULE')) throw error;
      }
    }
    return this.watched[0].keyOf(...call);
  };

  /**
   * Holds a key as another process would, in each watched store; faults do not hinder it. It is not recorded.
   *
   * @param key with its namespace.
   * @throws {LockTimeoutError} if the key is taken.
   */
  async holdElsewhere(key: string, options?: ElsewhereOptions): Promise<ElsewhereLease> {
    const leases: ElsewhereLease[] = [];
    const release = async (): Promise<void> => void (await Promise.all(leases.map((lease) => lease.release())));
    this.stops.push(() => void release());
    try {
      for (const store of new Set(this.watched.map((locks) => locks.store))) leases.push(await holdElsewhere(store, key, options));
    } catch (error) {
      await release();
      throw error;
    }
    return { owner: leases[0]!.owner, release, [Symbol.asyncDispose]: release };
  }

  /** Forgets what has happened. What is still held stays. */
  clear(): void {
    this.recorded = [];
    this.renewals = 0;
    this.entries = this.entries.filter(({ state }) => state === 'held');
  }

  /** Records also what these locks do: an app may have several stores. */
  watch(locks: Locks): this {
    if (this.all.includes(locks)) return this;
    this.all.push(locks);
    faultsOf(locks.store)?.closes(locks);
    probes.add(this);
    for (const event of Object.keys(EVENTS) as (keyof LockEvents)[]) {
      this.stops.push(locks.on(event, (details) => this.record({ ...details, event, at: now() } as RecordedEvent)));
    }
    return this;
  }

  /** Records no more, and releases what is held elsewhere. A module does so when it is closed. */
  onApplicationShutdown(): void {
    for (const stop of this.stops.splice(0)) stop();
    probes.delete(this);
  }

  /**
   * Warns, once, of a store for which time does not pass.
   *
   * @throws {Error} if something is held that was taken under another clock: it would never be renewed.
   */
  checkClock(): void {
    const real = this.isWarned ? undefined : this.all.find(({ store }) => REAL_TIME.includes(store.name));
    const text = `passTime() moves this process only: the "${real?.store.name}" store answers in real time, and its leases end by its own clock.`;
    if (real) new LockLog(CONSOLE).warn('NDL_REAL_TIME', text);
    this.isWarned ||= real !== undefined;
    const clock = fakeClock();
    const stale = this.entries.find((entry) => entry.state === 'held' && entry.clock !== clock);
    if (!stale) return;
    const when = stale.clock ? 'under other fake timers' : 'before the fake timers were installed';
    const advice = 'Install them before the module is made, and release everything before they are removed.';
    throw new Error(`"${stale.key}" was taken ${when}: its lease does not move with them. ${advice}`);
  }

  /** Two holdings of such keys that overlapped; `undefined`: there are none. */
  overlap(isMeant: (key: string) => boolean): readonly [Holding, Holding] | undefined {
    const all = this.entries.filter(({ key }) => isMeant(key));
    for (const [index, second] of all.entries()) {
      const first = all.slice(0, index).find(({ to }) => to > second.from);
      if (first) return [first, second];
    }
    return undefined;
  }

  private get watched(): readonly [Locks, ...Locks[]] {
    const [locks, ...others] = this.all;
    if (!locks) throw new Error('LockProbe: it watches no locks. Get it from the testing module, or make it with new LockProbe(locks).');
    return [locks, ...others];
  }

  private record(event: RecordedEvent): void {
    if (event.event === 'renewed') return void this.renewals++;
    this.recorded.push(event);
    const order = ++this.count;
    if (event.event === 'acquired') {
      const { key, kind, label, owner, fencingToken, waited, at } = event;
      const begun = { key, kind, label, owner, fencingToken, waited, since: at, state: 'held', from: order, to: Infinity } as const;
      this.entries.push({ ...begun, clock: fakeClock() });
    } else if (event.event === 'released' || event.event === 'handedOver' || (event.event === 'lost' && !event.afterRelease)) {
      // A tenure is handed over from caller to caller, and only one of them has it.
      const entry = this.entries.find(({ state, key, owner }) => state === 'held' && key === event.key && owner === event.owner);
      if (entry) Object.assign(entry, { state: event.event, to: order });
    }
  }
}

/** Holds a key by other {@link Locks} over the same store, as another process has them. */
async function holdElsewhere(store: LockStore, key: string, options: ElsewhereOptions = {}): Promise<ElsewhereLease> {
  const { for: length, owner: app = 'elsewhere', kind = 'mutex', permits = 1 } = options;
  // They do not close the store, which is the app's.
  const view = Object.create(innerOf(store), { close: { value: () => Promise.resolve() } }) as LockStore;
  const locks = new Locks(view, { app, logger: false });
  // One try: a test that waits for its own contention would hang.
  const sharedLock = (): Lock =>
    kind === 'semaphore' ? locks.semaphore(key, { permits }) : locks.readWriteLock(key)[kind as 'read' | 'write'];
  const lease = await (kind === 'mutex' ? locks.mutex(key) : sharedLock()).acquire({ waitTimeout: 0 });
  const release = async (): Promise<void> => {
    clearTimeout(timer);
    await lease.release();
    await locks.close();
  };
  faultsOf(store)?.elsewhere.push(release);
  const timer = length === undefined ? undefined : after(length, () => void release()).unref();
  return { owner: lease.owner, release, [Symbol.asyncDispose]: release };
}
