import type { Locks } from 'nestjs-distributed-lock/core';
import type { Lifecycle } from '../../lib/core/holding/lifecycle.js';
import { watchdog } from '../../lib/core/holding/watchdog.js';

/** How many keys these locks hold. */
export function heldBy(locks: Locks): number {
  return watchdog.tenuresOf((locks as unknown as { runtime: Lifecycle }).runtime).length;
}
