export const KINDS = ['mutex', 'read-write', 'semaphore', 'multi', 'leader', 'latch'] as const;
export type Kind = (typeof KINDS)[number];

/** How a call holds its keys: alone, beside other readers, or by a number of permits. */
export type Mode = 'alone' | 'read' | 'permits';

/** A call with its options. Times are milliseconds. */
export interface Asked {
  e: 'asked';
  id: string;
  /** Calls of one chain do not exclude one another: they re-enter a lock, or read under their own write lock. */
  chain: string;
  kind: Kind;
  keys: string[];
  mode: Mode;
  /** permits that are taken, and the largest number of permits that anybody names for this key */
  count?: number;
  permits?: number;
  /** null: it waits without end */
  patience: number | null;
  requestTimeout: number;
  keyTimeout: number;
  retryInterval: number;
  fair: boolean;
  minHold: number;
  maxHold: number | null;
}

export interface LeaseSeen {
  key: string;
  token: number | null;
  owner: string;
  /** what `remaining()` said, asked after the entry's time was taken */
  remaining: number;
}

export type CallEntry =
  | Asked
  | { e: 'granted'; id: string; leases: LeaseSeen[] }
  /** the time is taken before `remaining()` is asked, so that the sum never claims more than the lease did */
  | { e: 'claim'; id: string; remaining: number[] }
  /** the caller's own signal calls its wait off */
  | { e: 'aborting'; id: string }
  /** the lease's signal aborted: from here on the holder claims nothing */
  | { e: 'signal'; id: string; reason: string }
  | { e: 'releasing'; id: string }
  | { e: 'released'; id: string; ours: boolean }
  /** the call ended without a lease */
  | { e: 'ended'; id: string; outcome: Outcome; error: string }
  /** the unguarded counter: the time is that of the check before the write, `done` that after it */
  | { e: 'wrote'; id: string; key: string; read: number; readAt: number; remaining: number; done: number }
  /** the counter at the resource that compares tokens */
  | { e: 'fenced'; id: string; key: string; token: number; outcome: 'written' | 'refused'; value: number };

export type Outcome = 'timeout' | 'aborted' | 'shutdown' | 'resigned' | 'store' | 'final' | 'lost' | 'config' | 'internal';

export type LatchEntry =
  | {
      e: 'latch';
      id: string;
      op: 'set' | 'down' | 'await';
      key: string;
      round: number;
      count: number;
      patience: number;
      retryInterval: number;
      requestTimeout: number;
    }
  | { e: 'latched'; id: string; result: string };

/** An operator takes a key away from one holder. */
export type ForceEntry =
  { e: 'forcing'; id: string; key: string; grace: number; keepFor: number } | { e: 'forced'; id: string; result: string };

export type WorkerEntry =
  | { e: 'started'; pid: number }
  | { e: 'lag'; ms: number }
  | { e: 'event'; name: string; key: string; detail: string }
  | { e: 'trouble'; what: 'unhandled rejection' | 'uncaught exception' | 'warning' | 'logged'; detail: string }
  | { e: 'closing'; bound: number }
  | { e: 'closed' }
  /** what a worker still has when its locks are closed */
  | { e: 'left'; resources: string[]; listeners: string[] };

/** Entries of the controller. */
export type ChaosEntry =
  | { e: 'fault'; n: number; name: string; group: string; target: string; detail: string }
  | { e: 'healed'; n: number; name: string; failed?: string }
  | { e: 'killed'; worker: string }
  | { e: 'calm' }
  | { e: 'exit'; worker: string; expected: boolean; detail: string };

export type Entry = { t: number; w: string } & (CallEntry | LatchEntry | ForceEntry | WorkerEntry | ChaosEntry);
export type Said<E extends Entry['e']> = Extract<Entry, { e: E }>;
type Unstamped<T> = T extends unknown ? Omit<T, 't' | 'w'> : never;
/** An entry without its time and its author. */
export type Fact = Unstamped<Entry>;
