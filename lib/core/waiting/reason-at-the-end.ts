import type { Holder } from '../holding/holder.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import type { Tenure } from '../holding/tenure.js';
import { LockError, ownCopyOf, timedOut, unanswered } from '../model/errors.js';
import type { Contender, Taken } from './contender.js';

/** What a queue knows when the patience of a caller is over. */
interface Known {
  readonly key: string;
  readonly runtime: Lifecycle;
  /** It asks the store; `undefined`: a caller of this process has the key. */
  readonly contender: Contender | undefined;
  readonly tenure: Tenure | undefined;
  /** Why the key was not granted when the store was asked last. */
  readonly outcome: Taken | LockError | undefined;
  readonly isInUse: boolean;
  readonly holder: Holder | undefined;
}

/**
 * Contention, or an outage.
 *
 * @param isAtTheLatest the last requestTimeout of the caller is over, too.
 */
export function reasonAtTheEnd(known: Known, waited: number, isAtTheLatest: boolean): LockError {
  const { key, contender, isInUse } = known;
  const tenure = contender ? undefined : known.tenure;
  const outcome = tenure ? tenure.outage : known.outcome;
  if (outcome instanceof LockError) return ownCopyOf(outcome);
  const silence = (tenure ?? contender)?.silence ?? 0;
  const isKnown = tenure ?? outcome ?? isInUse;
  if (!isKnown || silence >= known.runtime.requestTimeout || (isAtTheLatest && silence > 0)) return unanswered(key);
  return timedOut(key, waited, known.holder);
}
