import type { LocksOptions } from '../../lib/core/model/locks-options.js';
import { type LeaseDriver, traitsOf } from '../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../lib/core/store/lock-store.js';
import type { Locks } from '../../lib/locks.js';
import { LocksOfKind, MUTEX, type Kind } from './kinds.js';

/** A part that a store, or a driver, may lack. */
export type DriverExtra =
  | 'wakeUps'
  | 'inspector'
  | 'bus'
  /** The keys are listed: `RecordTable.keys`. */
  | 'keys'
  | 'semaphore'
  | 'countDownLatch'
  | 'extend'
  | 'adopt'
  /** A release offers the key to all waiters that may have it, also to those behind the first; and the first readers get one token. */
  | 'oneServer';

/** Opens the store under test once more, onto the same data. */
export interface MakeStore {
  (): LockStore;
  /** Parts that its drivers lack. */
  readonly without?: readonly DriverExtra[];
}

/** Tests of what only some drivers offer. */
export function where(makeStore: MakeStore, extra: DriverExtra, tests: () => void): void {
  if (!makeStore.without?.includes(extra)) tests();
}

/** The verbs of a driver that differ from those of the real one, which it gets to pass requests on. */
export type Misbehaviour = (real: LeaseDriver) => Partial<LeaseDriver>;

export interface OpenOptions extends LocksOptions {
  /** For what no real store does on request: errors, late and lost replies. */
  misbehaving?: Misbehaviour;
  /** Milliseconds: that of the store. */
  requestTimeout?: number;
}

export interface LocksOpener {
  /** New Locks over the store, with the kind of lock under test for a mutex. They are closed when the test ends, log nothing, and do not wait long for bodies. */
  open(options?: OpenOptions): Locks;
  /** A key that no other test uses. */
  newKey(): string;
  /** The kind's own driver, for requests that a test makes by itself; of new Locks if no others are given. */
  driver(of?: Locks): LeaseDriver;
}

/**
 * Milliseconds: a lease that a test waits to see the end of. On a busy machine it may be over before the next line, so nothing may depend on its being held.
 * Every other lease on a real clock is at least 5 s long.
 */
export const SHORT_LEASE = 100;

let keys = 0;

/** Call it inside a `describe`. */
export function locksOpener(makeStore: MakeStore, kind: Kind = MUTEX): LocksOpener {
  const opened: Locks[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()));
  });
  const open = ({ misbehaving, requestTimeout, ...options }: OpenOptions = {}): Locks => {
    const real = makeStore();
    const store = misbehaving || requestTimeout ? altered(real, kind, misbehaving, requestTimeout) : real;
    const locks = new LocksOfKind(kind, store, { logger: false, shutdownTimeout: 200, ...options });
    opened.push(locks);
    return locks;
  };
  return {
    open,
    newKey: () => `contract:${process.pid}:${++keys}`,
    driver: ({ store } = open()) => {
      const real = verbsOf(kind.driverOf(store));
      return kind.share ? { ...real, acquire: (request) => real.acquire({ share: kind.share, ...request }) } : real;
    },
  };
}

function altered(store: LockStore, kind: Kind, misbehaving: Misbehaviour = () => ({}), requestTimeout = store.requestTimeout): LockStore {
  const real = verbsOf(kind.driverOf(store));
  return { ...kind.withDriver(store, { ...real, ...misbehaving(real) }), requestTimeout };
}

function verbsOf(driver: LeaseDriver): LeaseDriver {
  const { extend, adopt } = driver;
  return {
    ...traitsOf(driver),
    acquire: (request) => driver.acquire(request),
    renew: (batch) => driver.renew(batch),
    release: (request) => driver.release(request),
    leave: (tenancy) => driver.leave(tenancy),
    check: (tenancy) => driver.check(tenancy),
    ...(extend && { extend: (request) => extend.call(driver, request) }),
    ...(adopt && { adopt: (request) => adopt.call(driver, request) }),
  };
}
