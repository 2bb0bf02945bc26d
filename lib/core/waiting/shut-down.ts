import type { Lifecycle } from '../holding/lifecycle.js';
import { watchdog } from '../holding/watchdog.js';
import { LockLostError } from '../model/errors.js';
import type { LockStore } from '../store/lock-store.js';
import { isSettledWithin } from '../util/clock.js';
import type { LockQueues } from './lock-queues.js';

/** Ends all work over a store: waits this many milliseconds for running bodies, then aborts and releases all leases that are left. */
export async function shutDown(queues: LockQueues, store: LockStore, timeout: number): Promise<void> {
  const { runtime } = queues;
  runtime.stopWaiting();
  await isSettledWithin(timeout, runtime.drained());
  runtime.close();
  queues.close();
  await revokeAll(runtime);
  // Clean-up in flight may fail with a broken connection. It is sent once more over the next one.
  await isSettledWithin(3 * store.requestTimeout, runtime.quiet());
}

/** Releases the leases that are left when the locks are closed. Leases that guard no body should have been released before. */
async function revokeAll(runtime: Lifecycle): Promise<void> {
  const held = watchdog.tenuresOf(runtime).flatMap(({ turn }) => turn.leases);
  const keys = [...new Set(held.filter(({ guardsBody }) => !guardsBody).map(({ key }) => key))];
  if (keys.length > 0) {
    const names = keys.map((key) => `"${key}"`).join(', ');
    runtime.events.warn(
      `Closed while leases were held that nobody had released: ${names}. Use \`await using\`, or release() in a finally.`,
      {
        keys,
      },
    );
  }
  await Promise.all(held.map((lease) => lease.revoke(new LockLostError('The lease was released because the locks were closed.'))));
}
