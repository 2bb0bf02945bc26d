import { AsyncLocalStorage } from 'node:async_hooks';
import { isSameDriver, type LeaseDriver } from '../store/lease-driver.js';
import type { Lease } from '../model/lease.js';
import { processWide } from '../util/process-wide.js';
import type { HeldLease } from './held-lease.js';

/** The version of what a re-entrant call uses of a lease. A copy of this package with another one shows the lease, and does not re-enter it. */
const INTERNALS = 1;

/** A lease that this call chain holds, and the ones around it. */
interface Hold {
  /** Result of {@link currentLease}: the lease, or the multi-lease that it is part of. */
  shown: Lease | undefined;
  /** `undefined` after its release: a promise or a timer that was made under the lease may keep this object in memory. */
  lease: HeldLease | undefined;
  readonly internals: number;
  outer: Hold | undefined;
}

const chain = processWide('holds', () => new AsyncLocalStorage<Hold | undefined>());
const NONE: readonly Lease[] = [];

/**
 * Runs the work in a call chain that holds this lease.
 *
 * @param shown what {@link currentLease} returns.
 * @throws {LockLostError} if the lease has ended before the work begins.
 */
export function runHolding<T>(lease: HeldLease, work: () => T, shown: Lease = lease): T {
  lease.assertHeld();
  const hold: Hold = { shown, lease, internals: INTERNALS, outer: innermost(chain.getStore()) };
  lease.onRelease(() => {
    hold.lease = undefined;
    hold.shown = undefined;
    hold.outer = innermost(hold.outer);
  });
  return chain.run(hold, work);
}

/** The innermost lease that this call chain holds; of a multi-lock, the lease of all its keys. `undefined` outside of every locked call. */
export function currentLease(): Lease | undefined {
  return innermost(chain.getStore())?.shown;
}

/** The lease under which this call chain holds the key. */
export function heldLease(driver: LeaseDriver, key: string): HeldLease | undefined {
  for (let hold = innermost(chain.getStore()); hold; hold = innermost(hold.outer)) {
    const tenure = hold.internals === INTERNALS ? hold.lease?.turn.tenure : undefined;
    if (tenure?.key === key && isSameDriver(tenure.driver, driver)) return hold.lease;
  }
  return undefined;
}

/** The leases that this call chain holds, the innermost first, after the given ones. */
export function heldLeases(others = NONE): readonly Lease[] {
  let leases = others;
  for (let hold = innermost(chain.getStore()); hold; hold = innermost(hold.outer)) if (hold.lease) leases = [...leases, hold.lease];
  return leases;
}

/** The innermost hold that is not released. */
function innermost(hold: Hold | undefined): Hold | undefined {
  while (hold && !hold.lease) hold = hold.outer;
  return hold;
}
