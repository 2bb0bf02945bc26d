import type { AcquireReply, LeaseDriver, Share } from '../store/lease-driver.js';
import type { LockError } from '../model/errors.js';
import type { Lifecycle } from '../holding/lifecycle.js';

export type Taken = Extract<AcquireReply, { granted: false }>;

/** What those who wait want now: the first of them may be another one with each try. */
export interface Wish {
  /** Lease length, milliseconds. */
  readonly ttl: number;
  readonly minHold: number;
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
  readonly retryInterval: number;
  /** Whether to wait at all. */
  readonly isPatient: boolean;
  /** Whether the queue at the store is wanted even where it cannot wake us. */
  readonly fair: boolean;
  readonly holding: readonly string[];
  readonly share: Share | undefined;
}

export interface Grant {
  readonly owner: string;
  readonly wish: Wish;
  readonly token: number | null;
  /** When the request that was granted was sent: validity counts from there, since the store began to count after that. */
  readonly sentAt: number;
  /** Whether others are known to want the key. */
  readonly isContested: boolean;
}

/** On whose behalf a contender asks. It cancels the contender when nobody waits any more. */
export interface Contest {
  readonly runtime: Lifecycle;
  readonly driver: LeaseDriver;
  readonly key: string;
  wish(): Wish;
  /** Whether a grant of this is still what the first of them wants. */
  isWanted(wish: Wish): boolean;
  granted(grant: Grant): void;
  /** The key is taken, or the store gave no answer; it is asked again. */
  refused(outcome: Taken | LockError): void;
  /** No further try can help. The contest is over. */
  failed(error: LockError): void;
}
