import { revokeAll } from '../holding/revoke-all.js';
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
