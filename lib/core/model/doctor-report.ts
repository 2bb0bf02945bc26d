import type { LockError } from './errors.js';

/** `'unknown'`: the store does not say, or this user may not ask. It never counts as `'ok'`. */
export type CheckState = 'ok' | 'warn' | 'bad' | 'unknown';

/** Two holders at the same time would only cost duplicate work; or they would cause damage. */
export type Purpose = 'efficiency' | 'correctness';

/** A finding of the doctor about one thing. */
export interface DoctorCheck {
  /** Stays the same from version to version, such as `'eviction'`. */
  readonly id: string;
  readonly name: string;
  readonly state: CheckState;
  /** A few words on what was seen. */
  readonly seen: string;
  /** The guarantees that depend on it, such as `'G2'`. */
  readonly touches: readonly string[];
  /** Advice on what to do; `''`: nothing. */
  readonly advice: string;
  /** A use for which the locks are not fit, and the reason, as the end of a sentence. */
  readonly limits?: { readonly purpose: Purpose; readonly because: string };
}

/** Uses for which the locks of a store are fit. */
export interface DoctorVerdict {
  readonly efficiency: 'yes' | 'no' | 'unknown';
  /** `'token'`: only if the resource checks the fencing token. */
  readonly correctness: 'yes' | 'token' | 'no' | 'unknown';
  /** The same as sentences, with the reasons. */
  readonly text: string;
}

/** Result of {@link Locks.doctor}. */
export interface DoctorReport {
  readonly at: Date;
  /** `'redis'`, `'postgres'`… */
  readonly store: string;
  readonly checks: readonly DoctorCheck[];
  /** The smallest `keyTimeout` to use with this store from here, in milliseconds; `null`: no lock was tried. */
  readonly leastKeyTimeout: number | null;
  readonly verdict: DoctorVerdict;
}

/** Options of {@link Locks.doctor}. */
export interface DoctorOptions {
  /** Milliseconds to wait for the wake-up of the lock that is tried. `false`: none is tried, and nothing is written to the store. Default 3,000. */
  probe?: number | false;
}

/** Result of {@link Locks.health}. Times are milliseconds. */
export interface LocksHealth {
  /** Whether the store answers, and grants locks. */
  readonly isUp: boolean;
  /** Why it does not. */
  readonly error: LockError | undefined;
  /** Sentences about each thing that does not work as it should. */
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
