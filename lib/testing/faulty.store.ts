import { StoreError } from '../core/model/errors.js';
import type { LatchDriver } from '../core/store/latch-driver.js';
import {
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  type LeaseDriver,
  traitsOf,
} from '../core/store/lease-driver.js';
import type { LockStore } from '../core/store/lock-store.js';
import { idle } from '../core/util/clock.js';
import type { FaultyRequest, LockFaults } from './lock-faults.js';
import { StoreFaults } from './store-faults.js';

/** A store whose requests can fail on demand. */
export type FaultyStore = LockStore & { readonly faults: LockFaults };

const inners = new WeakMap<LockStore, LockStore>();

/**
 * Puts any store behind faults: of locks and of latches, not of what an operator asks. Requests that no fault meets are passed on as they are.
 *
 * @param faults by which a test makes them happen; default: new ones.
 */
export function faultyStore(inner: LockStore, faults: LockFaults = new StoreFaults()): FaultyStore {
  const cause = faults as StoreFaults;
  const faulty = (driver: LeaseDriver): LeaseDriver => faultyDriver(driver, cause, inner.requestTimeout);
  const { readWriteLock, semaphore, countDownLatch } = inner;
  const store: FaultyStore = {
    faults: cause,
    name: inner.name,
    requestTimeout: inner.requestTimeout,
    mutex: faulty(inner.mutex),
    readWriteLock: readWriteLock && { read: faulty(readWriteLock.read), write: faulty(readWriteLock.write) },
    semaphore: semaphore && faulty(semaphore),
    countDownLatch: countDownLatch && faultyLatches(countDownLatch, cause, inner.requestTimeout),
    inspector: inner.inspector,
    bus: inner.bus,
    onWarning: inner.onWarning && ((listener) => inner.onWarning!(listener)),
    supports: (feature) => inner.supports(feature),
    close: async () => {
      await Promise.allSettled(cause.elsewhere.splice(0).map((release) => release()));
      await inner.close();
    },
  };
  inners.set(store, inner);
  return store;
}

/** The faults of a store; `undefined`: it has none. */
export function faultsOf(store: LockStore): StoreFaults | undefined {
  return inners.has(store) ? ((store as FaultyStore).faults as StoreFaults) : undefined;
}

/** The store without its faults. */
export function innerOf(store: LockStore): LockStore {
  const inner = inners.get(store);
  return inner ? innerOf(inner) : store;
}

const noAnswer = (why: string): StoreError => new StoreError(`The store did not answer: ${why}.`, { transient: true });

/** A request that a slow or an absent store concerns, and no other fault. */
async function asked<Reply>(faults: StoreFaults, requestTimeout: number, send: () => Promise<Reply>): Promise<Reply> {
  if (faults.isOut) throw noAnswer('a fault of the test makes it unreachable');
  const reply = send();
  const { delay } = faults;
  if (delay > 0) {
    // What it rejects with is awaited below.
    reply.catch(() => undefined);
    await idle(Math.min(delay, requestTimeout), [], true);
    if (delay >= requestTimeout) throw noAnswer(`a fault of the test delays it by ${delay} ms`);
  }
  return reply;
}

function faultyDriver(inner: LeaseDriver, faults: StoreFaults, requestTimeout: number): LeaseDriver {
  const request = async <Reply>(on: FaultyRequest, send: () => Promise<Reply>): Promise<Reply> => {
    const fault = faults.next(on);
    if (fault?.does === 'refuse') {
      fault.done();
      throw fault.error;
    }
    const reply = await asked(faults, requestTimeout, send);
    if (!fault) return reply;
    fault.done();
    throw noAnswer('a fault of the test drops the reply');
  };
  const taken = async ({ key, yields }: AcquireRequest): Promise<AcquireReply> => {
    const yielded = yields === undefined ? undefined : await inner.release({ key, owner: yields, keepFor: 0 });
    return { granted: false, remaining: -1, holder: null, ahead: 0, yielded };
  };
  const adopted = async (call: AdoptRequest): Promise<AdoptReply> => {
    const reply = await inner.adopt!(call);
    faults.isGone(call.from);
    if (reply !== 'lost') faults.grants(inner, { ...call, queue: false });
    return reply;
  };
  return {
    ...traitsOf(inner),
    acquire: (call) =>
      request('acquire', async () => {
        const reply = faults.isTaken(call.key) ? await taken(call) : await inner.acquire(call);
        faults.isGone(call.yields);
        if (reply.granted) faults.grants(inner, call);
        return reply;
      }),
    renew: (batch) => batch.map((each) => request('renew', () => inner.renew([each])[0]!)),
    extend: inner.extend && ((each) => request('renew', () => inner.extend!(each))),
    adopt: inner.adopt && ((each) => request('acquire', () => adopted(each))),
    release: (each) => request('release', () => (faults.isGone(each.owner), inner.release(each))),
    leave: (tenancy) => asked(faults, requestTimeout, () => (faults.isGone(tenancy.owner), inner.leave(tenancy))),
    check: (tenancy) => asked(faults, requestTimeout, () => inner.check(tenancy)),
  };
}

function faultyLatches(inner: LatchDriver, faults: StoreFaults, requestTimeout: number): LatchDriver {
  const ask = <Reply>(send: () => Promise<Reply>): Promise<Reply> => asked(faults, requestTimeout, send);
  return {
    wakeUps: inner.wakeUps,
    trySetCount: (change) => ask(() => inner.trySetCount(change)),
    countDown: (change) => ask(() => inner.countDown(change)),
    look: (look) => ask(() => inner.look(look)),
    leave: (tenancy) => ask(() => inner.leave(tenancy)),
  };
}
