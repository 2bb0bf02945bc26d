import '../support/virtual-time.js';
import type { AcquireOptions, Lease, Locks } from 'nestjs-distributed-lock/core';
import { gate } from '../support/gate.js';
import { type Kind, MUTEX } from './kinds.js';
import { queued } from './misbehaviour.js';
import { type DriverExtra, locksOpener, type LocksOpener, type MakeStore, type Misbehaviour, where } from './open-locks.js';
import { rejection } from '../support/rejection.js';

/** So long a lease, and so long between two polls, that only a release or a wake-up explains a turn that comes soon. */
export const long = { keyTimeout: 60_000, retryInterval: 60_000 };
export const patient = { ...long, waitTimeout: Infinity };

/** One that waits in Locks of its own, and has its queue entry. */
export interface Waiter {
  readonly lease: Promise<Lease>;
  readonly locks: Locks;
  readonly owner: string;
}

/** What the tests of one kind of lock have in common. */
export interface Setting extends LocksOpener {
  readonly makeStore: MakeStore;
  /** Tests of what only some drivers offer. */
  where(extra: DriverExtra, tests: () => void): void;
  /** Whether somebody else could take it now. */
  isFree(key: string): Promise<boolean>;
  /** Takes the key from its holder, who does not know of it. */
  takeAway(lease: { key: string; owner: string }): Promise<unknown>;
  /** The same, and its holder is notified. */
  lose(lease: Lease): Promise<unknown>;
  /** Resolves when it has its queue entry. */
  waiter(key: string, options?: AcquireOptions, misbehaving?: Misbehaviour): Promise<Waiter>;
}

/** Call it inside a `describe`. */
export function setting(makeStore: MakeStore, kind: Kind = MUTEX): Setting {
  const opener = locksOpener(makeStore, kind);
  const { open, driver } = opener;
  const takeAway: Setting['takeAway'] = ({ key, owner }) => driver().release({ key, owner, keepFor: 0 });
  return {
    ...opener,
    makeStore,
    where: (extra, tests) => where(makeStore, extra, tests),
    async isFree(key) {
      const lease = await open().tryAcquire(key, { reentrant: false });
      return lease !== null && (await lease.release());
    },
    takeAway,
    async lose(lease) {
      await takeAway(lease);
      return rejection(lease.renew());
    },
    async waiter(key, options, misbehaving = () => ({})) {
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
