import type { KeyKind } from '../model/key-report.js';

/** What a store knows of a key. Times are milliseconds; those that are a date count from 1970, by the store's clock. */
export interface KeyState {
  readonly key: string;
  /** `'foreign'`: a value that no lock has written. `'free'`: nothing, though some may wait. */
  readonly kind: KeyKind;
  /** When the store looked. */
  readonly at: number;
  /** The last one that was given; `null`: unknown. */
  readonly fencingToken: number | null;
  /** Of a semaphore. */
  readonly permits?: number;
  /** Of a latch. */
  readonly count?: number;
  /** Until what is there expires; `null`: never, or unknown. */
  readonly remaining: number | null;
  /** A hundred at most, those of a shared key by the end of their lease. */
  readonly holders: readonly HolderState[];
  readonly holderCount: number;
  /** The first hundred at most. Those of a latch are only counted. */
  readonly waiters: readonly WaiterState[];
  readonly waiterCount: number;
}

/** Who holds a key, or a share of it. */
export interface HolderState {
  readonly owner: string;
  /** `'kept'`: it was released, and its `minHold` is not over. */
  readonly phase: 'held' | 'kept';
  readonly remaining: number | null;
  /** When it was granted; `null`: the store does not know. */
  readonly since: number | null;
  /** `Infinity`: the whole key. */
  readonly permits: number;
}

/** Who has a place in the queue of a key. */
export interface WaiterState {
  readonly owner: string;
  readonly since: number;
  readonly permits: number;
  /** What its call chain holds, each as `<uuid of the owner> <key>`. */
  readonly holding: readonly string[];
  /** False: its process listens to its wake-ups no more. */
  readonly isHeard: boolean;
}

/** A request to take a key away from its owner. */
export interface SeizeRequest {
  readonly key: string;
  readonly kind: Exclude<KeyKind, 'count-down latch' | 'foreign' | 'free'>;
  readonly owner: string;
  readonly phase: HolderState['phase'];
  /** Of a mutex: it must also be the last one that was given. */
  readonly token: number | undefined;
  /** Milliseconds for which the key stays taken; 0: the next waiter is offered it. */
  readonly keepFor: number;
}

/** What an operator wants to know of a store. Errors are those of a `LeaseDriver`. */
export interface Inspector {
  /** The states of up to 64 keys, in their order. Changes nothing. */
  inspect(keys: readonly string[]): Promise<KeyState[]>;
  /**
   * The keys that begin with a prefix and were used as a lock in the last hour, some at a time: also keys that are free by now. A key may come twice.
   *
   * @param latches whether to find count-down latches, too, which takes a second pass.
   */
  keys(prefix: string, latches: boolean): AsyncIterable<readonly string[]>;
  /** False: the owner, or the token, is another one by now. One step. */
  seize(request: SeizeRequest): Promise<boolean>;
  /** Keeps a line about what was seized. */
  note(line: string): Promise<void>;
}

/** Messages between the processes that use a store. Each hears its own, too. */
export interface Bus {
  /** The same for all who send over one connection: each of them hears a message, and {@link publish} counts the connection once. */
  readonly connection: string;
  /** Begins to hear; false: it cannot, or not now. @param warn is told why not. */
  open(warn: (message: string) => void): Promise<boolean>;
  /** Calls back with each message of the topic, while the bus is open. Resolves, when it is heard, to a function that stops that. Never rejects. */
  listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void>;
  /** Resolves to how many connections have heard it, as far as is known. */
  publish(topic: BusTopic, text: string): Promise<number>;
}

/** Who may publish `revoke` may take leases away. */
export type BusTopic = 'ops' | 'ops:told' | 'revoke';
