import type { Tenancy, WakeUps } from './lease-driver.js';

/**
 * The id of a change, by which the store knows a repeat. Operations of one line follow one another: a store remembers only the last one of each
 * line, for as long as the latch lives.
 */
export interface LatchOperation {
  readonly line: string;
  /** It grows within a line. An operation whose number is smaller than the last one's has arrived late, and changes nothing. */
  readonly number: number;
}

export interface LatchChange {
  readonly key: string;
  /** For how many milliseconds from now on, at least, the store remembers the latch and this operation. */
  readonly ttl: number;
  readonly operation: LatchOperation;
}

export interface LatchLook extends Tenancy {
  /** If the latch is not counted down yet: note the owner, to be woken by {@link WakeUps} when it is. */
  readonly queue: boolean;
}

/** What a store knows of a latch. */
export interface LatchState {
  /** 0: counted down. */
  readonly count: number;
  /** Differs for each latch of this key: one that is set after another has expired is a new latch. */
  readonly id: string;
  /** How often this latch has been set. It is set again only when it is counted down, so all earlier rounds were counted down. */
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
  /** Sets the count of a new latch, or of one that is counted down: true, also for a repeat. False: there is one that is not counted down. */
  trySetCount(change: LatchChange & { readonly count: number }): Promise<boolean>;
  /** Counts down by one; at 0 it wakes all noted owners. Resolves to the count that is left; 0 if there is no latch. */
  countDown(change: LatchChange): Promise<number>;
  /** `undefined`: there is no latch. */
  look(look: LatchLook): Promise<LatchState | undefined>;
  /** Forgets a noted owner. It is sent after the owner's last look has settled. */
  leave(tenancy: Tenancy): Promise<void>;
}
