import { refusalIn } from '../model/errors.js';
import type { LockKindName } from '../model/events.js';
import type { ObservedRequest, StoreOperation } from '../model/telemetry.js';
import { now } from '../util/clock.js';
import { type LeaseDriver, traitsOf } from '../store/lease-driver.js';
import type { LockStore } from '../store/lock-store.js';

type Hear = (request: ObservedRequest) => void;

/** The store with drivers that measure each request. Replies and errors are passed on as they are, and as soon. */
export function timedStore(store: LockStore, hear: Hear): LockStore {
  const timed = (driver: LeaseDriver, kind: LockKindName): LeaseDriver => timedDriver(driver, kind, store.requestTimeout, hear);
  const { readWriteLock, semaphore } = store;
  return {
    name: store.name,
    requestTimeout: store.requestTimeout,
    mutex: timed(store.mutex, 'mutex'),
    readWriteLock: readWriteLock && { read: timed(readWriteLock.read, 'read'), write: timed(readWriteLock.write, 'write') },
    semaphore: semaphore && timed(semaphore, 'semaphore'),
    countDownLatch: store.countDownLatch,
    supports: (feature) => store.supports(feature),
    close: () => store.close(),
  };
}

function timedDriver(driver: LeaseDriver, kind: LockKindName, requestTimeout: number, hear: Hear): LeaseDriver {
  const measure = <T>(operation: StoreOperation, sentAt: number, reply: Promise<T>): Promise<T> => {
    const tell = (outcome: ObservedRequest['outcome'], duration: number): void => hear({ kind, operation, outcome, duration });
    reply.then(
      () => tell('ok', now() - sentAt),
      (cause: unknown) => {
        const duration = now() - sentAt;
        tell(refusalIn(cause) ? 'refused' : duration < requestTimeout ? 'error' : 'timeout', duration);
      },
    );
    return reply;
  };
  return {
    ...traitsOf(driver),
    acquire: (request) => measure('acquire', now(), driver.acquire(request)),
    renew: (batch) => {
      const sentAt = now();
      const replies = driver.renew(batch);
      for (const reply of replies) void measure('renew', sentAt, reply);
      return replies;
    },
    extend: driver.extend ? (request) => measure('extend', now(), driver.extend!(request)) : undefined,
    adopt: driver.adopt ? (request) => measure('adopt', now(), driver.adopt!(request)) : undefined,
    release: (request) => measure('release', now(), driver.release(request)),
    leave: (tenancy) => measure('leave', now(), driver.leave(tenancy)),
    check: (tenancy) => measure('check', now(), driver.check(tenancy)),
  };
}
