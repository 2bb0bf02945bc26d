import type { LatchDriver } from '../../lib/core/store/latch-driver.js';
import type { LockStore } from '../../lib/core/store/lock-store.js';
import { locksOpener, type MakeStore, type OpenOptions } from './open-locks.js';

/** The verbs of a latch's driver that differ from those of the real one, which it gets to pass requests on. */
export type LatchMisbehaviour = (real: LatchDriver) => Partial<LatchDriver>;

/** Does what {@link locksOpener} does, with latches that misbehave. */
export function latchOpener(makeStore: MakeStore) {
  let wanted: LatchMisbehaviour | undefined;
  const { open: openLocks, newKey } = locksOpener(() => (wanted ? altered(makeStore(), wanted) : makeStore()));
  const open = ({ misbehaving, ...options }: Omit<OpenOptions, 'misbehaving'> & { misbehaving?: LatchMisbehaviour } = {}) => {
    wanted = misbehaving;
    return openLocks(options);
  };
  /** `driver`: for requests that a test makes by itself. */
  return { open, newKey, driver: () => open().store.countDownLatch! };
}

function altered(store: LockStore, misbehaving: LatchMisbehaviour): LockStore {
  const latch = store.countDownLatch!;
  return { ...store, countDownLatch: { ...latch, ...misbehaving(latch) } };
}
