import { asStoreError, StoreError } from '../model/errors.js';
import { isSettledWithin, now } from '../util/clock.js';
import type { LockStore } from './lock-store.js';

const KEY = 'nestjs-distributed-lock:health';

/**
 * Asks the store once, and changes nothing. Resolves to the milliseconds that this took.
 *
 * @param namespace put before the key: a user may be restricted to it.
 * @throws {StoreError} when there is no answer within so many milliseconds, or a refusal.
 */
export async function checkStore({ mutex, requestTimeout }: LockStore, namespace: string, within: number): Promise<number> {
  const key = namespace + KEY;
  const start = now();
  try {
    const asked = Promise.resolve(mutex.check({ key, owner: 'nobody' }));
    // After a requestTimeout the driver itself rejects, with the reason.
    if (within < requestTimeout && !(await isSettledWithin(within, asked)))
      throw new StoreError(`The store did not answer within ${within} ms.`, { transient: true });
    await asked;
  } catch (cause) {
    throw asStoreError(cause, key);
  }
  return now() - start;
}
