import { AsyncLocalStorage } from 'node:async_hooks';
import type { LeaseDriver } from './driver.js';
import type { Lease } from './lease.js';

/** A lease that this call chain holds, and the ones around it. */
interface Hold {
  readonly lease: Lease;
  readonly outer: Hold | undefined;
}

const SLOT = Symbol.for('nestjs-distributed-lock:holds');
const shared = globalThis as { [SLOT]?: AsyncLocalStorage<Hold | undefined> };
// On globalThis, so that two copies of this package in one process know each other's holds.
const chain = (shared[SLOT] ??= new AsyncLocalStorage<Hold | undefined>());

/** Runs the work in a call chain that holds this lease, from the work's first line on. */
export function runHolding<T>(lease: Lease, work: () => T): T {
  return chain.run({ lease, outer: innermost(chain.getStore()) }, work);
}

/** The innermost lease that this call chain holds; `undefined` outside of every locked call. */
export function currentLease(): Lease | undefined {
  return innermost(chain.getStore())?.lease;
}

/** The lease under which this call chain holds the key. */
export function heldLease(driver: LeaseDriver, key: string): Lease | undefined {
  for (let hold = innermost(chain.getStore()); hold; hold = innermost(hold.outer)) {
    if (hold.lease.isOf(driver, key)) return hold.lease;
  }
  return undefined;
}

// What a chain has released it no longer holds; nor must a chain that lives on (a timer set in a locked method) drag it along.
function innermost(hold: Hold | undefined): Hold | undefined {
  while (hold?.lease.isReleased) hold = hold.outer;
  return hold;
}
