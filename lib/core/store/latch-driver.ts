import type { Tenancy, WakeUps } from './lease-driver.js';

/**
 * What makes a change count once, however often it is sent. Operations of one line follow one another: a store needs to remember the last one
 * of each line only, for as long as the latch of its change lives.
 */
export interface LatchOperation {
  readonly line: string;
  /** Larger than that of any operation before it in its line. What comes with a smaller one than the last comes late, and changes nothing. */
  readonly number: number;
}

export interface LatchChange {
  readonly key: string;
  /** Milliseconds for which the store remembers the latch, and this operation, from now on at least. */
  readonly ttl: number;
  readonly operation: LatchOperation;
}

export interface LatchLook extends Tenancy {
  /** Note the owner as one to be woken by {@link WakeUps} when the latch is counted down, if it is not yet. */
  readonly queue: boolean;
}

/** What a store knows of a latch. */
export interface LatchState {
  /** 0: counted down. */
  readonly count: number;
  /** Another one for each latch of this key: one that expires, and is set again, is another one. */
  readonly id: string;
  /** How often this latch has been set: since it is set anew only when it is counted down, an earlier round was. */
  readonly round: number;
  /** Milliseconds until it expires; negative: unknown. */
  readonly remaining: number;
}

/**
 * The verbs that a store answers for count-down latches. Each is one atomic step at the store and safe to repeat; errors as of a
 * {@link LeaseDriver}.
 */
export interface LatchDriver {
  /** Without it, waiters ask again and again. */
  readonly wakeUps?: WakeUps;
  /** Sets the count of a latch that is counted down, or of a new one: true, also when it is repeated. False: there is one that is not. */
  trySetCount(change: LatchChange & { readonly count: number }): Promise<boolean>;
  /** Counts down by one, and wakes all who wait at 0. Resolves to the count that is left, 0 where there is no latch. */
  countDown(change: LatchChange): Promise<number>;
  /** `undefined`: there is no latch. */
  look(look: LatchLook): Promise<LatchState | undefined>;
  /** Forgets an owner that was noted to wait. Sent once its look has settled. */
  leave(tenancy: Tenancy): Promise<void>;
}
