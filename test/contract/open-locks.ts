import { Locks, type LeaseDriver, type LocksOptions, type LockStore } from 'nestjs-distributed-lock/core';

/** Opens the store under test once more, onto the same data. */
export type MakeStore = () => LockStore;

/** What a driver does otherwise than the real one, which it gets to pass things on to. */
export type Misbehaviour = (real: LeaseDriver) => Partial<LeaseDriver>;

export interface OpenOptions extends LocksOptions {
  /** For what no real store does on request: errors, late and lost replies. */
  misbehaving?: Misbehaviour;
  /** Of the store, milliseconds. */
  requestTimeout?: number;
}

export interface LocksOpener {
  /** New Locks over the store; they are closed when the test ends. They log nothing, and do not wait long for bodies. */
  open(options?: OpenOptions): Locks;
  /** A key that no other test uses. */
  newKey(): string;
}

let keys = 0;

/** Call it inside a `describe`. */
export function locksOpener(makeStore: MakeStore): LocksOpener {
  const opened: Locks[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()));
  }, 10_000);
  return {
    open({ misbehaving, requestTimeout, ...options } = {}) {
      const real = makeStore();
      const store = misbehaving || requestTimeout ? altered(real, misbehaving, requestTimeout) : real;
      const locks = new Locks(store, { logger: false, shutdownTimeout: 200, ...options });
      opened.push(locks);
      return locks;
    },
    newKey: () => `contract:${process.pid}:${++keys}`,
  };
}

function altered(store: LockStore, misbehaving: Misbehaviour = () => ({}), requestTimeout = store.requestTimeout): LockStore {
  const { mutex } = store;
  const real: LeaseDriver = {
    acquire: (request) => mutex.acquire(request),
    renew: (batch) => mutex.renew(batch),
    release: (request) => mutex.release(request),
    leave: (tenancy) => mutex.leave(tenancy),
    check: (tenancy) => mutex.check(tenancy),
    ...(mutex.wakeUps && { wakeUps: mutex.wakeUps }),
  };
  return { name: store.name, requestTimeout, mutex: { ...real, ...misbehaving(real) }, close: () => store.close() };
}
