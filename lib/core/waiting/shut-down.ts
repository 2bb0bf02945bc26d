import { watchdog } from '../holding/watchdog.js';
import { LockLostError } from '../model/errors.js';
import type { LockStore } from '../store/lock-store.js';
import { isSettledWithin } from '../util/clock.js';
import type { LockQueues } from './lock-queues.js';

/** Ends what runs over a store: it drains bodies for so many milliseconds, and then aborts and releases what is still held. */
export async function shutDown(queues: LockQueues, store: LockStore, timeout: number): Promise<void> {
  const { runtime } = queues;
  runtime.stopWaiting();
  await isSettledWithin(timeout, runtime.drained());
  runtime.close();
  queues.close();
  const held = watchdog.tenuresOf(runtime).flatMap(({ turn }) => turn.leases);
  const bare = [...new Set(held.filter(({ guardsBody }) => !guardsBody).map(({ key }) => `"${key}"`))];
  if (bare.length > 0)
    runtime.events.warn(
      `Closed while leases were held that nobody had released: ${bare.join(', ')}. Use \`await using\`, or release() in a finally.`,
    );
  await Promise.all(held.map((lease) => lease.revoke(new LockLostError('The lease was released because the locks were closed.'))));
  // Clean-up under way may fail with a broken connection, and is sent once more over the next one.
  await isSettledWithin(3 * store.requestTimeout, runtime.quiet());
}
