import type { LockError } from './errors.js';

/** What {@link Locks.health} resolves to. Times are milliseconds. */
export interface LocksHealth {
  /** Whether the store answers, and grants locks. */
  readonly isUp: boolean;
  /** Why it does not. */
  readonly error: LockError | undefined;
  /** What does not work as it should, in words. */
  readonly degraded: readonly string[];
  /** How long the store took to answer; `undefined`: it did not. */
  readonly roundTrip: number | undefined;
  /** Whether waiters are notified; otherwise they poll. */
  readonly wakeUps: boolean;
  /** Keys that this process holds. */
  readonly held: number;
  /** Callers of this process that wait for a key, without the candidates of elections. */
  readonly waiting: number;
  /** How long the first of them has waited; 0: there is none. */
  readonly oldestWait: number;
}
