import { LockError, ownCopyOf, timedOut, unanswered } from '../model/errors.js';
import type { LockQueue } from './lock-queue.js';
import type { Waiter } from './waiter.js';

/**
 * Contention, or an outage.
 *
 * @param isAtTheLatest whether the last requestTimeout of the caller is over, too.
 */
export function reasonAtTheEnd(queue: LockQueue, { waited }: Waiter, isAtTheLatest = false): LockError {
  const { key, isInUse } = queue;
  const [contender] = queue.contenders;
  // Without a contender a caller of this process has the key.
  const tenure = contender ? undefined : queue.holders[0];
  const outcome = tenure ? tenure.outage : queue.outcome;
  if (outcome instanceof LockError) return ownCopyOf(outcome);
  const silence = (tenure ?? contender)?.silence ?? 0;
  const isKnown = tenure ?? outcome ?? isInUse;
  if (!isKnown || silence >= queue.runtime.requestTimeout || (isAtTheLatest && silence > 0)) return unanswered(key);
  return timedOut(key, waited, queue.holder);
}
