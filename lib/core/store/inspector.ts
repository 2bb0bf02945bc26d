import type { KeyHolder, KeyKind, KeyReport, KeyWaiter } from '../model/key-report.js';
import type { WakeUps } from './lease-driver.js';

/** A key as a store knows it. Times are milliseconds; those that are a date count from 1970, by the store's clock. */
export interface KeyState extends Omit<KeyReport, 'at' | 'holders' | 'waiters'> {
  /** The time of this state. */
  readonly at: number;
  /** Until the value expires; `null`: never, or unknown. */
  readonly remaining: number | null;
  /** A hundred at most, those of a shared key by the end of their lease. */
  readonly holders: readonly HolderState[];
  /** The first hundred at most. Those of a latch are only counted. */
  readonly waiters: readonly WaiterState[];
}

/** An owner that holds a key, or a share of it. */
export interface HolderState extends Pick<KeyHolder, 'owner' | 'phase' | 'remaining' | 'permits'> {
  /** When it was granted; `null`: the store does not know. */
  readonly since: number | null;
}

/** An owner with an entry in the queue of a key. */
export interface WaiterState extends Pick<KeyWaiter, 'owner' | 'permits' | 'isHeard'> {
  readonly since: number;
  /** The leases of its call chain, each as `<uuid of the owner> <key>`. */
  readonly holding: readonly string[];
}

/** A request to take a key away from its owner. */
export interface SeizeRequest {
  readonly key: string;
  readonly kind: Exclude<KeyKind, 'count-down latch' | 'foreign' | 'free'>;
  readonly owner: string;
  readonly phase: HolderState['phase'];
  /** The last fencing token of a mutex, which it must still have. */
  readonly token: number | undefined;
  /** Milliseconds for which the key stays taken; 0: the next waiter is offered it. */
  readonly keepFor: number;
}

/** The questions of operators to a store. Errors are those of a `LeaseDriver`. */
export interface Inspector {
  /** The states of up to 64 keys, in their order. Changes nothing. */
  inspect(keys: readonly string[]): Promise<KeyState[]>;
  /**
   * The keys that begin with a prefix and were used as a lock in the last hour, some at a time: also keys that are free by now. A key may come twice.
   *
   * @param latches whether to find count-down latches, too, which takes a second pass.
   */
  keys(prefix: string, latches: boolean): AsyncIterable<readonly string[]>;
  /** Takes the key away in one step. False: the owner, or the token, has changed. */
  seize(request: SeizeRequest): Promise<boolean>;
  /** Keeps a line about what was seized. */
  note(line: string): Promise<void>;
}

/** Messages between the processes that use a store. Each process also receives its own. */
export interface Bus {
  /** The same for all senders over one connection: each of them receives a message, and {@link publish} counts the connection once. */
  readonly connection: string;
  /** Begins to receive; false: it cannot, or not now. @param log as of {@link WakeUps.open}. */
  open(...log: Parameters<WakeUps['open']>): Promise<boolean>;
  /** Calls back with each message of the topic, while the bus is open. Resolves, when messages arrive, to a function that stops that. Never rejects. */
  listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void>;
  /** Resolves to how many connections have received it, as far as is known. */
  publish(topic: BusTopic, text: string): Promise<number>;
}

/** A user with the right to publish `revoke` may take leases away. */
export type BusTopic = 'ops' | 'ops:told' | 'revoke';
