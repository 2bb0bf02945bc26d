import { AsyncResource } from 'node:async_hooks';
import { heldLeases } from '../holding/call-chain.js';
import type { HeldLease } from '../holding/held-lease.js';
import type { GrantedCall } from '../holding/tenure.js';
import { LockAbortedError, LockTimeoutError, type LockError } from '../model/errors.js';
import type { Lease } from '../model/lease.js';
import type { LockEvent, LockEventEmitter } from '../model/events.js';
import type { ResolvedOptions } from '../model/options.js';
import type { CallTrace } from '../model/telemetry.js';
import type { Ticket } from '../model/ticket.js';
import type { LinkedEntry, LinkedList } from '../util/linked-list.js';
import { Caller } from './caller.js';

/** The request of one caller. */
export interface AcquireCall extends GrantedCall {
  readonly options: ResolvedOptions;
  /** Milliseconds to wait; 0: one try. */
  readonly patience: number;
  /** For a key of a multi-lock: the leases that it already has of the other keys. */
  readonly taken?: readonly Lease[];
  /** The ticket of the lease that it takes over. */
  readonly adopts?: Ticket | undefined;
  /** The part of telemetry in this call. */
  readonly trace?: CallTrace;
}

/**
 * The answer to a caller whose wait timeout is over. The store's answer is that the key is taken, or an error. To look is to ask once more: one request
 * for all. Without its answer within a `requestTimeout`, it is an outage.
 *
 * | last answer                 | the first caller | the others  | after the look |
 * |-----------------------------|------------------|-------------|----------------|
 * | fresh answer                | looks            | that answer | that answer    |
 * | old answer                  | looks            | look        | that answer    |
 * | none since the outage began | looks            | look        | an outage      |
 */
export type LastAnswer = 'fresh answer' | 'old answer' | 'none since the outage began';

/** @param answeredAt `undefined`: never. @param silence milliseconds since the request under way was sent. */
export function lastAnswer(answeredAt: number | undefined, silence: number, time: number, requestTimeout: number): LastAnswer {
  if (answeredAt === undefined || silence >= requestTimeout) return 'none since the outage began';
  return time < answeredAt + requestTimeout ? 'fresh answer' : 'old answer';
}

/** A caller that waits for a lease. */
export class Waiter extends Caller<AcquireCall> implements LinkedEntry<Waiter> {
  /** Leases that its call chain holds. */
  readonly holding: readonly Lease[];
  /** Whether its call chain holds a lease: at a shutdown it is work under way. */
  readonly isUnderLock: boolean;
  isWaiting = false;
  list: LinkedList<Waiter> | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  private context: AsyncResource | undefined;

  constructor(
    call: AcquireCall,
    readonly resolve: (lease: HeldLease) => void,
    readonly reject: (error: unknown) => void,
  ) {
    super(call);
    this.holding = heldLeases(call.taken);
    this.isUnderLock = this.holding.length > (call.taken?.length ?? 0);
  }

  /** Its fields in events. */
  event(key: string): LockEvent {
    const { kind, options } = this.settings;
    return { key, kind, label: options.label };
  }

  /** Its key was found taken for the first time. */
  begin(events: LockEventEmitter, key: string, onDeadline: () => void): void {
    this.isWaiting = true;
    // Work of {@link inContext} then runs in the current async context, that of the call that waits, not in that of the call that ends its wait.
    if (events.needsContext) this.context = new AsyncResource('LockWait', { requireManualDestroy: true });
    this.limit(onDeadline);
    if (this.settings.patience > 0 && events.isHeard('waiting')) events.emit('waiting', this.event(key));
  }

  emitGranted(events: LockEventEmitter, lease: HeldLease, attempts: number): void {
    const { trace, adopts } = this.settings;
    if (!trace && !events.isHeard('acquired')) return;
    const { fencingToken, event } = lease.turn;
    const via = adopts ? 'adopted' : attempts === 0 ? 'handover' : this.isWaiting ? 'store' : 'free';
    // No spread: it costs more than the rest of an acquire on Node 20 (`npm run bench -- telemetry`).
    const acquired = Object.assign(event, { fencingToken, waited: this.waited, attempts, via, adoptedFrom: adopts?.owner } as const);
    trace?.granted(lease, acquired);
    this.inContext(() => events.emit('acquired', acquired));
  }

  emitEnd(events: LockEventEmitter, key: string, error: LockError, attempts: number): void {
    const { options, guardsBody, patience, trace } = this.settings;
    trace?.failed(error, attempts);
    if (patience > 0 && error instanceof LockTimeoutError) {
      const { label } = options;
      const line = (): string => (label === undefined ? error.message : `${label}: ${error.message}`);
      events.debug(line, { key, label, owner: error.holder, once: `timed out:${label ?? ''}` });
    }
    const ended = (): LockEvent & { waited: number } => ({ ...this.event(key), waited: this.waited });
    if (error instanceof LockTimeoutError) {
      const { holder, holderLabel } = error;
      // A single try that fails is nothing to keep, and is to cost nothing.
      const isHeard = events.isHeard('timeout') && (patience > 0 || events.needsContext);
      if (isHeard) events.emit('timeout', { ...ended(), attempts, holder, holderLabel, waitTimeout: patience });
      if (options.onTimeout === 'skip' && guardsBody && events.isHeard('skipped')) events.emit('skipped', ended());
    } else if (error instanceof LockAbortedError) {
      if (events.isHeard('aborted')) events.emit('aborted', { ...ended(), reason: error.reason });
    } else if (events.isHeard('failed')) events.emit('failed', { ...ended(), attempts, error });
  }

  inContext(work: () => void): void {
    if (this.context) this.context.runInAsyncScope(work);
    else work();
  }
}
