import type { LockError, LockLostError } from './errors.js';

/**
 * The events of a {@link Locks}. Times are milliseconds. Listeners of `acquired`, `waiting` and `timeout` run in the async context of the call that
 * asked for the key.
 */
export interface LockEvents {
  /** A key was taken: at the store, after `attempts` requests, or (`attempts` 0) from another caller of this process. */
  acquired: { key: string; owner: string; fencingToken: number | null; waited: number; attempts: number };
  /** A caller found the key taken, and waits for it. */
  waiting: { key: string };
  /** A key was given back. */
  released: { key: string; owner: string; held: number };
  /** A caller's patience ended. */
  timeout: { key: string; waited: number; attempts: number };
  /** A lease ended before its holder did. */
  lost: { key: string; owner: string; error: LockLostError };
  /** A renewal, a release or a give-up got no answer. It is repeated until it gets one, or the lease has ended. */
  unknown: { key: string; owner: string; operation: 'renew' | 'release' | 'leave'; error: LockError };
  /** The event loop stood still for more than a third of the `keyTimeout` of a lease that it should renew. */
  lag: { lag: number; keyTimeout: number; key: string };
}

/** The engine writes messages for operators to it. Nest's `Logger` and `console` both fit. */
export interface LockLogger {
  warn(message: string): void;
  error(message: string): void;
  debug?(message: string): void;
}

export type LockListener<E extends keyof LockEvents> = (event: LockEvents[E]) => unknown;

type Listener<Payload> = (payload: Payload) => unknown;

/** Calls listeners and the logger. One that fails cannot break a lock. */
export class LockEventEmitter<Events extends object = LockEvents> {
  private readonly listeners = new Map<keyof Events, Set<{ hear: (event: never) => unknown }>>();

  constructor(private readonly logger: LockLogger | false) {}

  /** An emitter of other events with the same logger. */
  forOther<Others extends object>(): LockEventEmitter<Others> {
    return new LockEventEmitter<Others>(this.logger);
  }

  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void {
    const listeners = this.listeners.get(event) ?? new Set();
    const entry = { hear: listener };
    this.listeners.set(event, listeners.add(entry));
    return () => void listeners.delete(entry);
  }

  /** Whether the event has listeners. If not, its payload need not be made. */
  isHeard(event: keyof Events): boolean {
    return (this.listeners.get(event)?.size ?? 0) > 0;
  }

  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    const listeners = this.listeners.get(event);
    if (!listeners) return;
    for (const { hear } of listeners) void this.tell(event, hear as Listener<Events[E]>, payload);
  }

  warn(message: string | (() => string)): void {
    log(this.logger, 'warn', message);
  }

  debug(message: string): void {
    log(this.logger, 'debug', message);
  }

  private async tell<E extends keyof Events>(event: E, listener: Listener<Events[E]>, payload: Events[E]): Promise<void> {
    try {
      await listener(payload);
    } catch (error) {
      log(this.logger, 'error', () => `A listener of "${String(event)}" failed: ${String(error)}`);
    }
  }
}

/** A logger that throws, or a message that cannot be made, must not break a lock. */
export function log(logger: LockLogger | false, level: keyof LockLogger, message: string | (() => string)): void {
  try {
    if (logger) logger[level]?.(typeof message === 'string' ? message : message());
  } catch {
    // There is no other place to report it to.
  }
}
