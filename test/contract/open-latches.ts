import type { LatchDriver } from '../../lib/core/store/latch-driver.js';
import type { LockStore } from '../../lib/core/store/lock-store.js';
import { locksOpener, type LocksOpener, type MakeStore, type OpenOptions } from './open-locks.js';

/** The verbs of a latch's driver that differ from those of the real one, which it gets to pass requests on. */
export type LatchMisbehaviour = (real: LatchDriver) => Partial<LatchDriver>;

export interface LatchOpener extends Pick<LocksOpener, 'newKey'> {
  open(options?: Omit<OpenOptions, 'misbehaving'> & { misbehaving?: LatchMisbehaviour }): ReturnType<LocksOpener['open']>;
  /** For requests that a test makes by itself. */
  driver(): LatchDriver;
}

/** Does what {@link locksOpener} does, with latches that misbehave. */
export function latchOpener(makeStore: MakeStore): LatchOpener {
  let wanted: LatchMisbehaviour | undefined;
  const opener = locksOpener(() => (wanted ? altered(makeStore(), wanted) : makeStore()));
  const open: LatchOpener['open'] = ({ misbehaving, ...options } = {}) => {
    wanted = misbehaving;
    return opener.open(options);
  };
  return { open, newKey: opener.newKey, driver: () => open().store.countDownLatch! };
}

function altered(store: LockStore, misbehaving: LatchMisbehaviour): LockStore {
  const latch = store.countDownLatch!;
  const real: LatchDriver = {
    trySetCount: (change) => latch.trySetCount(change),
    countDown: (change) => latch.countDown(change),
    look: (look) => latch.look(look),
    leave: (tenancy) => latch.leave(tenancy),
    wakeUps: latch.wakeUps!,
  };
  return { ...store, countDownLatch: { ...real, ...misbehaving(real) } };
}
