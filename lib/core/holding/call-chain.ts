import { AsyncLocalStorage } from 'node:async_hooks';
import type { LeaseDriver } from '../store/lease-driver.js';
import type { Lease } from './lease.js';

/** A lease that this call chain holds, and the ones around it. */
interface Hold {
  /** Empty once it is released: a promise or a timer made under it may keep this for as long as it lives itself. */
  lease: Lease | undefined;
  /** What the chain sees of it: itself, or all that it was taken together with. */
  shown: Lease | undefined;
  outer: Hold | undefined;
}

const SLOT = Symbol.for('nestjs-distributed-lock:holds');
const shared = globalThis as { [SLOT]?: AsyncLocalStorage<Hold | undefined> };
// On globalThis, so that two copies of this package in one process know each other's holds.
const chain = (shared[SLOT] ??= new AsyncLocalStorage<Hold | undefined>());

const NOTHING: readonly string[] = [];

/**
 * Runs the work in a call chain that holds this lease, from the work's first line on.
 *
 * @param shown what {@link currentLease} gives, where it is not this lease.
 * @throws {LockLostError} if the lease ran out before the work could begin.
 */
export function runHolding<T>(lease: Lease, work: () => T, shown = lease): T {
  lease.assertHeld();
  const hold: Hold = { lease, shown, outer: innermost(chain.getStore()) };
  lease.onRelease(() => {
    hold.lease = undefined;
    hold.shown = undefined;
    hold.outer = innermost(hold.outer);
  });
  return chain.run(hold, work);
}

/** The innermost lease that this call chain holds, of a multi-lock all of it; `undefined` outside of every locked call. */
export function currentLease(): Lease | undefined {
  return innermost(chain.getStore())?.shown;
}

/** The lease under which this call chain holds the key. */
export function heldLease(driver: LeaseDriver, key: string): Lease | undefined {
  for (let hold = innermost(chain.getStore()); hold; hold = innermost(hold.outer)) {
    if (hold.lease?.isOf(driver, key)) return hold.lease;
  }
  return undefined;
}

/** The keys that this call chain holds, the innermost first. */
export function heldKeys(): readonly string[] {
  let hold = innermost(chain.getStore());
  if (!hold) return NOTHING;
  const keys: string[] = [];
  for (; hold; hold = innermost(hold.outer)) if (hold.lease) keys.push(hold.lease.key);
  return keys;
}

// What a chain has released it no longer holds.
function innermost(hold: Hold | undefined): Hold | undefined {
  while (hold && !hold.lease) hold = hold.outer;
  return hold;
}
