/** Things that a store can have under a key. */
export type KeyKind = 'mutex' | 'read/write lock' | 'semaphore' | 'count-down latch' | 'foreign' | 'free';

/**
 * A key as for {@link Locks.mutex}; or what has the whole key, namespace included: a report, an error, an event, a lease.
 */
export type KeyName = string | { readonly key: string };

/** The report of the store, and of the processes that use it, about a key. Times are milliseconds. */
export interface KeyReport {
  /** Namespace included. */
  readonly key: string;
  /** `'foreign'`: a value that no lock has written. `'free'`: nothing, though callers may wait. A leader election is a mutex. */
  readonly kind: KeyKind;
  /** The time of the report, by the clock of the store. */
  readonly at: Date;
  /** The last one that was given; `null`: unknown. */
  readonly fencingToken: number | null;
  /** How many permits a semaphore has. */
  readonly permits?: number;
  /** The count of a latch that is left. */
  readonly count?: number;
  /** Until the value expires, unless it is renewed; `null`: never, or there is none. */
  readonly remaining: number | null;
  /** A hundred at most. */
  readonly holders: readonly KeyHolder[];
  readonly holderCount: number;
  /** A hundred at most that the store knows, and one for each process whose callers wait behind its own holder. One process is one waiter. */
  readonly waiters: readonly KeyWaiter[];
  /** The callers that wait, of all processes; of one that does not answer, those that the store knows. */
  readonly waiterCount: number;
}

/** The parts of an owner id, `app@host:pid:uuid`. */
export interface OwnerParts {
  readonly app: string;
  readonly host: string;
  readonly pid: number;
}

export interface KeyHolder extends OwnerParts {
  readonly owner: string;
  /** `'kept'`: it was released, and its `minHold` is not over. */
  readonly phase: 'held' | 'kept';
  readonly remaining: number | null;
  /** When it was granted; `null`: unknown. */
  readonly since: Date | null;
  /** `Infinity`: the whole key. */
  readonly permits: number;
  /** The report of its process; `undefined`: it did not answer. */
  readonly report?: ProcessReport;
}

export interface KeyWaiter extends OwnerParts {
  readonly owner: string;
  readonly since: Date;
  readonly permits: number;
  readonly holding: readonly HeldKey[];
  /** False: its process does not listen to wake-ups any more. */
  readonly isHeard: boolean;
  /** The reports of its process on each caller that waits by this owner; `undefined`: it did not answer. */
  readonly report?: readonly ProcessReport[];
}

/** A key that a call chain holds while it waits. */
export interface HeldKey {
  readonly key: string;
  /** The uuid of the owner that holds it. */
  readonly uuid: string;
}

/** The report of a process about one of its callers. */
export interface ProcessReport {
  readonly label?: string;
  /** Since when it holds the key, or waits for it, by the clock of its process. */
  readonly since: Date;
  readonly fencingToken: number | null;
  /** Milliseconds of the wait timeout of a waiting caller that are left; `null`: no limit. */
  readonly patienceLeft?: number | null;
  /** How many callers of its process wait behind a holder. */
  readonly waiting: number;
  /** How long the first of them has waited. */
  readonly oldestWait: number;
  /** Keys that the call chain of a waiting caller holds. */
  readonly holding: readonly HeldKey[];
  /** Until when another process can adopt the lease of the holder, which has handed it over. */
  readonly handedOverUntil?: Date;
}

/** An event of one process that an operator asks for afterwards. Equal ones of one minute are one. Times are milliseconds. */
export interface KeyEvent extends OwnerParts {
  /** `skipped`: a call went on without the key, as a tick of a cron does that another replica runs. */
  readonly event: 'lost' | 'timeout' | 'failed' | 'forced' | 'skipped';
  /** Namespace included. */
  readonly key: string;
  /** The time of the last of them, by the clock of its process. */
  readonly at: Date;
  readonly firstAt: Date;
  readonly count: number;
  readonly kind?: 'mutex' | 'read' | 'write' | 'semaphore';
  readonly label?: string;
  /** Not with `timeout`, `failed` and `skipped`. */
  readonly owner?: string;
  readonly waited?: number;
  readonly held?: number;
  /** Why it was lost or forced, or has failed. */
  readonly reason?: string;
  /** With `forced`: the operator. */
  readonly by?: string;
}

/** Options of {@link Locks.watch}. */
export interface WatchOptions {
  /** Keys without the namespace; `*` stands for any characters, `?` for one. Default `'*'`. */
  pattern?: string;
  /** Ends it. */
  signal?: AbortSignal;
}

/** Options of {@link Locks.list}. */
export interface ListOptions extends WatchOptions {
  /** Keys that are held, keys that a caller waits for, or both and the latches. Default `'held'`. */
  state?: 'held' | 'waited' | 'used';
  /** Milliseconds: only keys that a caller has held or waited for longer than this. */
  olderThan?: number;
  /** How many at most. Default 1,000. */
  limit?: number;
}

/** Options of {@link Locks.forceRelease}. */
export interface ForceOptions {
  /** The owner that has the key now. It may be left out if there is one holder. */
  owner?: string;
  /**
   * The token of the holder, or the `fencingToken` of the report, which is the last one that its process has reserved. Nothing is done if another caller has
   * the key by now, also one of the same process; nor if a process that is asked for the token of its holder does not answer.
   */
  token?: number;
  /** For the log, the events and the error of the holder. At most 4,096 characters. */
  reason: string;
  /** The operator who asks. At most 256 characters. */
  by?: string;
  /** Milliseconds that the holder has to release the key after its signal was aborted; 0: it is not asked, unless only it knows the `token`. Default 5,000. */
  grace?: number;
  /** Milliseconds for which the key stays taken after it was taken by force: its holder may still work. A kept key is left alone. Default 0. */
  keepFor?: number;
}

/** The result of {@link Locks.forceRelease}. */
export interface ForceReply {
  /** The holder released it when it was asked; it was taken by force; or another owner has it, none has it or it is kept, and nothing was done. */
  readonly outcome: 'gave back' | 'forced' | 'changed';
  /** The owner that was asked or, with `changed`, the owner that has the key now; `null`: none. */
  readonly holder: string | null;
}
