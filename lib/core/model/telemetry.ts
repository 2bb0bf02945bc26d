import type { LockError } from './errors.js';
import type { LockEvent, LockEvents, LockKindName, LockListener } from './events.js';

/** Receives what locks do: `prometheus()` or `openTelemetry()`. If it fails, the result of a lock does not change. */
export interface Telemetry {
  /** Called once by each {@link Locks} that it is given to. */
  observe(source: TelemetrySource): TelemetryObserver;
}

/** A lease that is held, or a caller that waits for one. */
export interface ObservedCall {
  readonly kind: LockKindName;
  readonly label: string | undefined;
  /** Milliseconds since the grant, or since the caller began to wait. */
  readonly age: number;
}

/** The numbers of one {@link Locks}. It counts when it is asked. */
export interface TelemetrySource {
  /** The name of the store, such as `'redis'`. */
  readonly store: string;
  /** False: a caller of this process waits for a key that another process has, and polls. `undefined`: the store sends no messages. */
  readonly isSubscribed: boolean | undefined;
  /** Adds a listener, as {@link Locks.on} does. */
  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void;
  /** The leases that this process holds now. */
  held(): Iterable<ObservedCall>;
  /** The callers of this process that found their key taken, and wait now, without the standbys of elections. */
  waiting(): Iterable<ObservedCall>;
  /** The elections in which this process is a candidate, and whether it leads. */
  elections(): Iterable<{ readonly name: string; readonly leads: boolean }>;
  /** Writes a warning to the logger of the locks. */
  warn(message: string): void;
}

/** A verb of a store. */
export type StoreOperation = 'acquire' | 'renew' | 'extend' | 'adopt' | 'release' | 'leave' | 'check';

/** One request to the store that has ended. */
export interface ObservedRequest {
  readonly kind: LockKindName;
  readonly operation: StoreOperation;
  /** `'refused'`: the server does not do it; `'timeout'`: it had no answer within the `requestTimeout` of the store. */
  readonly outcome: 'ok' | 'refused' | 'error' | 'timeout';
  /** Milliseconds. */
  readonly duration: number;
}

/** The part of a {@link Telemetry} that observes one {@link Locks}. */
export interface TelemetryObserver {
  /** Called for each request of a lock to the store, also for those of the background. Latches are not measured. */
  readonly request?: (request: ObservedRequest) => void;
  /** Follows the calls. The first of several telemetries that has it does so. */
  readonly calls?: CallTracing;
  /** The locks are closed. */
  stop(): void;
}

/** A lease of this process. */
export interface ObservedLease {
  /** The owner id. Leases of re-entrant calls have the same. */
  readonly owner: string;
}

/** Follows each call that asks for a key. Its methods must not throw. */
export interface CallTracing {
  /** Called in the async context of the call; `undefined`: this call is not followed. */
  begin(call: LockEvent): CallTrace | undefined;
  /** Runs the body of the call whose lease this is. */
  run<T>(lease: ObservedLease, body: () => T): T;
}

/** One call that is followed. Its methods are called in any async context, and must not throw. */
export interface CallTrace {
  /** Put behind the owner id, after a semicolon: waiters of other processes find the trace of the holder by it. */
  readonly suffix: string | undefined;
  /** It waits. Called for each answer of the store, with the owner id of the holder as far as that is known. */
  waits(holder: string | undefined): void;
  /** It has its lease. Called before the caller goes on. */
  granted(lease: ObservedLease, event: LockEvents['acquired']): void;
  /** It ends without a lease. */
  failed(error: LockError, attempts: number): void;
}
