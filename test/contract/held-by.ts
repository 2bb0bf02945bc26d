import type { Locks } from 'nestjs-distributed-lock/core';
import { watchdog } from '../../lib/core/holding/watchdog.js';

/** How many keys these locks hold. */
export function heldBy(locks: Locks): number {
  return watchdog.tenuresOf(locks['engine'].runtime).length;
}
