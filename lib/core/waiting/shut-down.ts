import { revokeAll } from '../holding/revoke-all.js';
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
  await revokeAll(runtime);
  // Clean-up under way may fail with a broken connection, and is sent once more over the next one.
  await isSettledWithin(3 * store.requestTimeout, runtime.quiet());
}
