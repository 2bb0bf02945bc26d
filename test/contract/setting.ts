import '../support/virtual-time.js';
import type { AcquireOptions, Lease } from 'nestjs-distributed-lock/core';
import { gate } from '../support/gate.js';
import { type Kind, MUTEX } from './kinds.js';
import { queued } from './misbehaviour.js';
import { type DriverExtra, locksOpener, type MakeStore, type Misbehaviour, where } from './open-locks.js';
import { rejection } from '../support/rejection.js';

/** So long a lease, and so long between two polls, that only a release or a wake-up explains a turn that comes soon. */
export const long = { keyTimeout: 60_000, retryInterval: 60_000 };
export const patient = { ...long, waitTimeout: Infinity };

/** What the tests of one kind of lock have in common. */
export type Setting = ReturnType<typeof setting>;

/** Call it inside a `describe`. */
export function setting(makeStore: MakeStore, kind: Kind = MUTEX) {
  const opener = locksOpener(makeStore, kind);
  const { open, driver } = opener;
  /** Takes the key from its holder, who does not know of it. */
  const takeAway = ({ key, owner }: { key: string; owner: string }) => driver().release({ key, owner, keepFor: 0 });
  return {
    ...opener,
    makeStore,
    /** Tests of what only some drivers offer. */
    where: (extra: DriverExtra, tests: () => void) => where(makeStore, extra, tests),
    /** Whether somebody else could take it now. */
    async isFree(key: string) {
      const lease = await open().tryAcquire(key, { reentrant: false });
      return lease !== null && (await lease.release());
    },
    takeAway,
    /** The same, and its holder is notified. */
    async lose(lease: Lease) {
      await takeAway(lease);
      return rejection(lease.renew());
    },
    /** One that waits in Locks of its own. Resolves when it has its queue entry. */
    async waiter(key: string, options?: AcquireOptions, misbehaving: Misbehaviour = () => ({})) {
      const placed = gate();
      let owner = '';
      const noting = queued((request) => {
        owner = request.owner;
        placed.open();
      });
      const locks = open({
        misbehaving: (real) => {
          const driver = { ...real, ...misbehaving(real) };
          return { ...driver, ...noting(driver) };
        },
      });
      const lease = locks.acquire(key, { ...patient, ...options });
      lease.catch(() => undefined);
      await placed.passed;
      return { lease, locks, owner };
    },
  };
}
