import { UnsupportedPrimitiveError } from '../model/errors.js';
import type { WarningCode } from '../model/lock-log.js';
import type { Bus, Inspector } from './inspector.js';
import type { LeaseDriver } from './lease-driver.js';
import type { LatchDriver } from './latch-driver.js';
import type { StoreDoctor } from './store-doctor.js';
import { processWide } from '../util/process-wide.js';

/** The parts that a store may have: the methods of `Locks`, and `'wakeUps'`: waiters are woken, and need not poll. */
export type StoreFeature =
  'mutex' | 'readWriteLock' | 'semaphore' | 'multiLock' | 'countDownLatch' | 'leaderElection' | 'inspect' | 'wakeUps';

/** A backend, such as `redisStore()` or `memoryStore()`. It has a driver for each kind of lock that it supports. */
export interface LockStore {
  /** For messages: `'redis'`, `'memory'`… */
  readonly name: string;
  /** Milliseconds within which each request is answered or rejected. */
  readonly requestTimeout: number;
  readonly mutex: LeaseDriver;
  readonly readWriteLock?: Readonly<Record<'read' | 'write', LeaseDriver>>;
  readonly semaphore?: LeaseDriver;
  readonly countDownLatch?: LatchDriver;
  /** Shows and frees keys, for operators. */
  readonly inspector?: Inspector;
  /** Without it, an operator sees only what the store knows. */
  readonly bus?: Bus;
  /** Examines the server, also at startup. Without it, only what locks do is examined. */
  readonly doctor?: StoreDoctor;
  /**
   * Calls back when the store may have gone away, such as when a connection broke: then it is asked, as after each request that had no answer. The
   * returned function stops.
   */
  onTrouble?(listener: () => void): () => void;
  /**
   * Calls back with what an operator should change, which the store found out at work, and the code of that line of the log: without one
   * `NDL_STORE_OTHER`. The returned function stops.
   */
  onWarning?(listener: (message: string, code?: WarningCode) => void): () => void;
  /**
   * For how many milliseconds until now its server has forgotten no grant for sure. Without this method, it never forgets. A quorum asks when a vote
   * has arrived; only the first question over a connection needs a request. Rejects with a {@link StoreError} if the server does not say.
   */
  remembers?(): Promise<number>;
  /** Sentences about what does not work as it should, though locks are granted, such as members of a quorum that do not answer. */
  degraded?(): readonly string[];
  /** Whether the store has this. A primitive that it does not have is an {@link UnsupportedPrimitiveError} of the `Locks`. */
  supports(feature: StoreFeature): boolean;
  /** Closes what the store has opened. A client that the user passed in stays open. */
  close(): Promise<void>;
}

/** @throws {UnsupportedPrimitiveError} if the store does not have this part. */
export function offered<T>({ name }: LockStore, part: T | undefined, what: string): T {
  if (part) return part;
  throw new UnsupportedPrimitiveError(`The ${name} store has no ${what}.`);
}

/** {@link LockStore.supports} of a store, by the drivers that it has. */
export function supportedBy(store: Omit<LockStore, 'supports' | 'close'>, feature: StoreFeature): boolean {
  if (feature === 'multiLock' || feature === 'leaderElection') return true;
  if (feature === 'inspect') return store.inspector !== undefined;
  if (feature === 'wakeUps') return store.mutex.wakeUps !== undefined && store.mutex.wakeUps.state !== 'polling';
  return store[feature] !== undefined;
}

const currents = processWide('currents', () => new WeakMap<LockStore, () => LockStore>());

/** A store with clients of its own, which cannot be used any more once it is closed: {@link currentOf} then makes another one like it. */
export function renewable(make: () => LockStore): LockStore {
  let current: LockStore;
  let isClosed: boolean;
  const open = (): LockStore => {
    const store = make();
    const close = store.close.bind(store);
    store.close = () => {
      isClosed ||= store === current;
      return close();
    };
    currents.set(store, () => (isClosed ? open() : current));
    isClosed = false;
    return (current = store);
  };
  return open();
}

/** The store that new `Locks` use for this one: an app may be started again in its process, with the same module. */
export function currentOf(store: LockStore): LockStore {
  return currents.get(store)?.() ?? store;
}
