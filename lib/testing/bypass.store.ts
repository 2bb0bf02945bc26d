import { configError } from '../core/model/errors.js';
import type { LeaseDriver } from '../core/store/lease-driver.js';
import { supportedBy, type LockStore } from '../core/store/lock-store.js';

/**
 * A store without any exclusion: everybody is granted everything at once, and nothing waits. For tests of what a method does, where locks would only
 * be in the way. Leases are leases: `currentLease()` and its `assertHeld()` work, and fencing tokens grow. Count-down latches are not supported.
 *
 * @throws {LockConfigError} where NODE_ENV is `production`.
 */
export function bypassStore(): LockStore {
  const refusal = 'bypassStore() grants every lock to everybody: it is for tests, and refuses to run where NODE_ENV is production.';
  if (process.env.NODE_ENV === 'production') throw configError('CALL', refusal);
  let token = 0;
  const driver: LeaseDriver = {
    grantsAll: true,
    queueEntryLifetime: 60_000,
    acquire({ tokens, yields }) {
      const first = token + 1;
      token += tokens;
      return Promise.resolve({ granted: true, token: first, yielded: yields === undefined ? undefined : 'released' });
    },
    adopt: ({ tokens }) => Promise.resolve({ token: (token += tokens) }),
    renew: (batch) => batch.map(() => Promise.resolve('renewed' as const)),
    release: () => Promise.resolve('released'),
    leave: () => Promise.resolve(),
    check: () => Promise.resolve({ state: 'free', remaining: -1, holder: null, token: null }),
  };
  // A driver for each kind: one key may be used as several.
  const own = (isShared: boolean): LeaseDriver => ({ ...driver, isShared });
  return {
    name: 'bypass',
    requestTimeout: 1000,
    mutex: own(false),
    readWriteLock: { read: own(true), write: own(true) },
    semaphore: own(true),
    supports(feature) {
      return feature !== 'wakeUps' && supportedBy(this, feature);
    },
    close: () => Promise.resolve(),
  };
}
