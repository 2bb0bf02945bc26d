import { asStoreError, StoreError } from '../model/errors.js';
import { isSettledWithin, now } from '../util/clock.js';
import type { LockStore } from './lock-store.js';

const KEY = 'nestjs-distributed-lock:health';

/**
 * Asks the store once. Resolves to the milliseconds that this took.
 *
 * @param namespace put before the key: a user may be restricted to it.
 * @param owner takes the key for a moment, since a store can answer and refuse each lock. Without it, nothing is changed.
 * @throws {StoreError} when there is no answer within so many milliseconds, or a refusal.
 */
export async function checkStore({ mutex, requestTimeout }: LockStore, namespace: string, within: number, owner?: string): Promise<number> {
  const key = namespace + KEY;
  const start = now();
  try {
    const asked: Promise<unknown> = Promise.resolve(
      owner === undefined
        ? mutex.check({ key, owner: 'nobody' })
        : mutex.acquire({ key, owner, ttl: requestTimeout, tokens: 1, queue: false }),
    );
    // After a requestTimeout the driver itself rejects, with the reason.
    if (within < requestTimeout && !(await isSettledWithin(within, asked)))
      throw new StoreError(`The store did not answer within ${within} ms.`, { transient: true });
    await asked;
    if (owner !== undefined) mutex.leave({ key, owner }).catch(() => undefined);
  } catch (cause) {
    throw asStoreError(cause, key);
  }
  return now() - start;
}
