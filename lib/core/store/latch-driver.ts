import type { Tenancy, WakeUps } from './lease-driver.js';

/**
 * The id of a change, by which the store recognises a repeat. The operations of one line follow one another, so that a store only remembers the last
 * one of each line, while the latch lives.
 */
export interface LatchOperation {
  readonly line: string;
  /** It grows within a line. An operation with a smaller number than the last one has arrived late, and changes nothing. */
  readonly number: number;
}

/** A request that changes a latch. */
export interface LatchChange {
  readonly key: string;
  /** Milliseconds for which the store remembers the latch, at least. */
  readonly ttl: number;
  readonly operation: LatchOperation;
  /** Milliseconds for which the store recognises a repeat of this operation, at least; default: `ttl`. */
  readonly knownFor?: number;
}

/** A request to read a latch and, if wanted, to be notified when its count reaches zero. */
export interface LatchLook extends Tenancy {
  /** Whether to remember the owner, if the latch is not counted down yet. {@link WakeUps} notify it then. */
  readonly queue: boolean;
}

/** A latch as the store has it. */
export interface LatchState {
  /** 0: counted down. */
  readonly count: number;
  /** A latch that is set after another of the same key has expired has another id. */
  readonly id: string;
  /** How often this latch has been set. All earlier rounds were counted down, because only then it can be set again. */
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
  /** Counts down by one; at 0 it wakes all remembered owners. Resolves to the count that is left; 0 if there is no latch. */
  countDown(change: LatchChange): Promise<number>;
  /** `undefined`: there is no latch. */
  look(look: LatchLook): Promise<LatchState | undefined>;
  /** Forgets an owner. It is sent after the owner's last request to read has settled. */
  leave(tenancy: Tenancy): Promise<void>;
}
