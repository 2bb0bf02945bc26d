import type { LockAbortedError, LockError, LockLostError, Revocation } from './errors.js';
import type { LockLog, LogContext, WarningCode } from './lock-log.js';

/** The kind of a lock, in events. */
export type LockKindName = 'mutex' | 'read' | 'write' | 'semaphore';

/** The fields of every event of a lock. */
export interface LockEvent {
  readonly key: string;
  readonly kind: LockKindName;
  /** The option `label` of the call; of a decorated method `'Class.method'`. */
  readonly label: string | undefined;
}

/**
 * The events of a {@link Locks}. Times are milliseconds. Listeners of `acquired`, `waiting`, `timeout`, `skipped` and `aborted` run in the async
 * context of the call that asked for the key. Each `acquired` is followed by one `released` or `handedOver`,
 * or by one `lost` that is not `afterRelease`.
 */
export interface LockEvents {
  /** A key was taken, after `attempts` requests: free, from the store after a wait, from another caller of this process, or by `adopt`. */
  acquired: LockEvent & {
    readonly owner: string;
    readonly fencingToken: number | null;
    readonly waited: number;
    readonly attempts: number;
    readonly via: 'free' | 'store' | 'handover' | 'adopted';
    /** The owner id of the lease that was handed over, as its ticket says; `undefined`: it was not adopted. */
    readonly adoptedFrom?: string | undefined;
  };
  /** A caller found the key taken, and waits for it. */
  waiting: LockEvent;
  /** A holder is done: the key was released, or handed to another caller. `limited`: its `maxHold` was over before. */
  released: LockEvent & { readonly owner: string; readonly fencingToken: number | null; readonly held: number; readonly limited: boolean };
  /**
   * The key was released while a transaction that a fence guard had checked was open: the next holder does not see what it writes. `guardedAt` and
   * `releasedAt` are lines of the stack. It is emitted before `released`.
   */
  releasedEarly: LockEvent & {
    readonly owner: string;
    readonly fencingToken: number | null;
    readonly guardedAt: string;
    readonly releasedAt: string;
  };
  /** The key was passed on to another caller of this process, without a request: `label` released it, `to` acquired it. */
  passedOn: LockEvent & { readonly owner: string; readonly to: string | undefined };
  /** A lease was handed over, to be adopted by another process. */
  handedOver: LockEvents['released'];
  /** A caller's wait timeout was over. With a `waitTimeout` of 0 it was a single try. */
  timeout: LockEvent & {
    readonly waited: number;
    readonly attempts: number;
    readonly holder: string | undefined;
    /** The label of the holder, if that is a caller of this process. */
    readonly holderLabel: string | undefined;
    readonly waitTimeout: number;
  };
  /** A caller's wait timeout was over, and `onTimeout: 'skip'` let it go on without. It follows `timeout`. */
  skipped: LockEvent & { readonly waited: number };
  /** A caller's wait was cancelled by its signal or by a shutdown. */
  aborted: LockEvent & { readonly waited: number; readonly reason: LockAbortedError['reason'] };
  /** A call ended because the store did not answer in time, or refused its request. */
  failed: LockEvent & { readonly waited: number; readonly attempts: number; readonly error: LockError };
  /** The store has renewed a lease. `margin`: the part of its validity that was left then; two thirds are normal. */
  renewed: LockEvent & { readonly owner: string; readonly margin: number };
  /**
   * A lease ended before its holder did: it `expired`, the store said that it was `taken`, by another owner or by a deletion, or it was `forced` away
   * by an operator.
   */
  lost: LockEvent & {
    readonly owner: string;
    readonly held: number;
    readonly reason: 'expired' | 'taken' | 'forced';
    /** Whether its `maxHold` was over before, so that it was not renewed any more. */
    readonly limited: boolean;
    readonly error: LockLostError;
    /** Whether its holder had released it before: a hand-over to another process found the loss. */
    readonly afterRelease: boolean;
  };
  /** An operator has taken a key away by force. At the process of the operator it has no `kind` and no `label`. */
  forced: Partial<LockEvent> & { readonly key: string; readonly owner: string; readonly token: number | null } & Revocation;
  /**
   * A renewal, a release or a give-up got no reply. It is repeated until it gets one, or the lease has ended. The repeats of a release or a give-up emit
   * nothing more.
   */
  unknown: { readonly key: string; readonly owner: string; readonly operation: 'renew' | 'release' | 'leave'; readonly error: LockError };
  /** The event loop stood still for more than a third of the `keyTimeout` of a lease that it should renew. */
  lag: { readonly key: string; readonly lag: number; readonly keyTimeout: number };
}

/** Called with the details of an event. */
export type LockListener<E extends keyof LockEvents> = (event: LockEvents[E]) => unknown;

type Listener<Payload> = (payload: Payload) => unknown;

/** Calls listeners and the logger. If one of them fails, no lock breaks. */
export class LockEventEmitter<Events extends object = LockEvents> {
  private readonly listeners = new Map<keyof Events, Set<{ hear: (event: never) => unknown }>>();
  private ofCalls = 0;

  constructor(private readonly log: LockLog) {}

  /** An emitter of other events with the same log. */
  forOther<Others extends object>(): LockEventEmitter<Others> {
    return new LockEventEmitter<Others>(this.log);
  }

  /** @param ofCall whether the listener needs the async context of the call that asked for the key. */
  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>, ofCall = true): () => void {
    const listeners = this.listeners.get(event) ?? new Set();
    const entry = { hear: listener };
    this.listeners.set(event, listeners.add(entry));
    this.ofCalls += Number(ofCall);
    return () => {
      if (!listeners.delete(entry)) return;
      this.ofCalls -= Number(ofCall);
      if (listeners.size === 0) this.listeners.delete(event);
    };
  }

  /** Whether waiters must keep the async context of their calls for a listener. */
  get needsContext(): boolean {
    return this.ofCalls > 0;
  }

  /** Whether the event has listeners. If not, its payload need not be made. */
  isHeard(event: keyof Events): boolean {
    return this.listeners.has(event);
  }

  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    const listeners = this.listeners.get(event);
    if (!listeners) return;
    for (const entry of listeners) this.call(event, entry as { hear: Listener<Events[E]> }, payload);
  }

  warn(code: WarningCode, message: string | (() => string), context?: LogContext): void {
    this.log.warn(code, message, context);
  }

  debug(message: string | (() => string), context?: LogContext): void {
    this.log.write('debug', message, context);
  }

  /** Log lines of an inbox: why nobody can be woken, and that a message was dropped. A client with the right to publish could repeat it without end. */
  readonly ofInbox = [
    (message: string): void => this.warn('NDL_POLLING', message, { once: 'polling' }),
    (message: string): void => this.debug(message, { once: message }),
  ] as const;

  private call<E extends keyof Events>(event: E, entry: { readonly hear: Listener<Events[E]> }, payload: Events[E]): void {
    const failed = (error: unknown): void =>
      this.log.warn('NDL_LISTENER', () => `A listener of "${String(event)}" failed: ${String(error)}`, { once: entry });
    try {
      const result = entry.hear(payload);
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}
