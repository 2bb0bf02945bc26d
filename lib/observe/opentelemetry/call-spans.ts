import {
  context,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Context,
  type Exception,
  type Link,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { LockAbortedError, LockTimeoutError, type LockError } from '../../core/model/errors.js';
import type { LockEvent, LockEvents } from '../../core/model/events.js';
import { ownerOf } from '../../core/model/owner.js';
import type { CallTrace, CallTracing, ObservedLease, TelemetrySource } from '../../core/model/telemetry.js';
import { SCOPE } from './metrics.js';

/** Milliseconds between two warnings of a tracer that fails. */
const WARNING_INTERVAL = 60_000;
const TRACE_OF_OWNER = /;([0-9a-f]{32})-([0-9a-f]{16})$/;

/** The spans of what this process holds now, by owner id. */
export class LiveHolds {
  private readonly holds = new Map<string, { readonly lease: ObservedLease; readonly span: Span }>();

  begin(lease: ObservedLease, span: Span): void {
    this.holds.set(lease.owner, { lease, span });
  }

  end(owner: string): Span | undefined {
    const hold = this.holds.get(owner);
    this.holds.delete(owner);
    return hold?.span;
  }

  /** The span of the call that has this lease. Re-entrant calls have leases of their own, and no span. */
  of(lease: ObservedLease): Span | undefined {
    const hold = this.holds.get(lease.owner);
    return hold?.lease === lease ? hold.span : undefined;
  }

  /**
   * A link to the holder. It is no parent: a chain of waiters would become one endless trace.
   *
   * The owner id of another process names the trace of the caller that got the key from the store. Later callers of that process may have it by now.
   */
  linkTo(holder: string | undefined): Link | undefined {
    const owner = ownerOf(holder);
    if (owner === null) return undefined;
    const hold = this.holds.get(owner);
    if (hold) return { context: hold.span.spanContext() };
    const [, traceId, spanId] = TRACE_OF_OWNER.exec(owner) ?? [];
    if (traceId === undefined || spanId === undefined) return undefined;
    return { context: { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true }, attributes: { 'link.turn': 'first' } };
  }
}

/** The spans of the calls of one `Locks`. */
export class CallSpans implements CallTracing {
  private readonly tracer: Tracer = trace.getTracer(SCOPE);
  private readonly forget: readonly (() => void)[];
  private warnedAt = -Infinity;

  /** @param keys whether keys may be in spans. */
  constructor(
    private readonly source: TelemetrySource,
    readonly live: LiveHolds,
    private readonly keys: boolean,
  ) {
    this.forget = [
      source.on('released', ({ owner, limited }) => this.endHold(owner, limited ? 'limited' : 'released')),
      source.on('handedOver', ({ owner }) => this.endHold(owner, 'handedOver')),
      source.on('lost', ({ owner, key, reason, limited, error, afterRelease }) => {
        // The owner may have released it already, and another call holds the key by the same tenure.
        if (!afterRelease) this.endHold(owner, limited ? 'limited' : reason === 'forced' ? 'forced' : 'lost', { key, error });
      }),
    ];
  }

  begin(call: LockEvent): CallSpan | undefined {
    return this.safely(() => {
      const parent = context.active();
      const caller = trace.getSpanContext(parent);
      const isSampled = caller !== undefined && (caller.traceFlags & TraceFlags.SAMPLED) !== 0 && isSpanContextValid(caller);
      return new CallSpan(this, call, parent, isSampled ? `${caller.traceId}-${caller.spanId}` : undefined);
    });
  }

  run<T>(lease: ObservedLease, body: () => T): T {
    const span = this.live.of(lease);
    return span ? context.with(trace.setSpan(context.active(), span), body) : body();
  }

  stop(): void {
    for (const each of this.forget) each();
  }

  start(what: 'hold' | 'wait', call: LockEvent, parent: Context, more: Attributes, startTime?: number, links: Link[] = []): Span {
    const { label, kind, key } = call;
    const attributes: Attributes = { 'distributed_lock.kind': kind, 'distributed_lock.store': this.source.store, ...more };
    if (label !== undefined) attributes['distributed_lock.name'] = label;
    if (this.keys) attributes['distributed_lock.key'] = key;
    return this.tracer.startSpan(`${what} ${label ?? kind}`, { kind: SpanKind.INTERNAL, attributes, startTime, links }, parent);
  }

  /** From now on the body of the lease runs in the span, and waiters link to it. */
  hold(lease: ObservedLease, span: Span): void {
    if (isSpanContextValid(span.spanContext())) this.live.begin(lease, span);
  }

  fail(span: Span, key: string, error: LockError): void {
    const { name, code } = error;
    const message = this.keys ? error.message : error.message.replaceAll(key, '…');
    const exception: Exception = this.keys ? error : { name, code, message };
    span.recordException(exception);
    span.setStatus({ code: SpanStatusCode.ERROR, message });
  }

  /** A tracer, a sampler or an exporter that fails changes no call. */
  safely<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      const time = performance.now();
      if (time >= this.warnedAt + WARNING_INTERVAL) {
        this.warnedAt = time;
        this.source.warn(`A span could not be made: ${String(error)}`);
      }
      return undefined;
    }
  }

  private endHold(owner: string, outcome: string, loss?: { readonly key: string; readonly error: LockError }): void {
    this.safely(() => {
      const span = this.live.end(owner);
      if (!span) return;
      span.setAttribute('distributed_lock.outcome', outcome);
      if (loss) this.fail(span, loss.key, loss.error);
      span.end();
    });
  }
}

/** The spans of one call: of its wait, if it had to wait, and of its hold. A free lock costs one span. */
class CallSpan implements CallTrace {
  private readonly startedAt = performance.now();
  private hasWaited = false;
  /** To the call that had the key when this one began to wait. */
  private link: Link | undefined;

  /** @param parent the context of the call. The answers of the store come in other contexts. */
  constructor(
    private readonly spans: CallSpans,
    private readonly call: LockEvent,
    private readonly parent: Context,
    readonly suffix: string | undefined,
  ) {}

  waits(holder: string | undefined): void {
    this.hasWaited = true;
    this.link ??= this.spans.live.linkTo(holder);
  }

  granted(lease: ObservedLease, { owner, fencingToken, attempts, via }: LockEvents['acquired']): void {
    this.spans.safely(() => {
      const attributes: Attributes = {
        'distributed_lock.owner': owner,
        'distributed_lock.attempts': attempts,
        'distributed_lock.via': via,
      };
      if (fencingToken !== null) attributes['distributed_lock.fencing_token'] = fencingToken;
      if (via !== 'free') this.tellWait({ ...attributes, 'distributed_lock.outcome': 'acquired' });
      this.spans.hold(lease, this.spans.start('hold', this.call, this.parent, attributes));
    });
  }

  failed(error: LockError, attempts: number): void {
    const isTimeout = error instanceof LockTimeoutError;
    const isAborted = error instanceof LockAbortedError;
    // A single try that found the key taken is no failure. An outage is one, however short the wait was.
    if (!this.hasWaited && (isTimeout || isAborted)) return;
    const outcome = isTimeout ? 'timeout' : isAborted ? 'aborted' : 'outage';
    if (isTimeout) this.link ??= this.spans.live.linkTo(error.holder);
    this.spans.safely(() => this.tellWait({ 'distributed_lock.attempts': attempts, 'distributed_lock.outcome': outcome }, error));
  }

  /** It is made when the wait is over, because most calls do not wait. */
  private tellWait(attributes: Attributes, error?: LockError): void {
    const end = Date.now();
    const start = end - (performance.now() - this.startedAt);
    const span = this.spans.start('wait', this.call, this.parent, attributes, start, this.link && [this.link]);
    if (error && !(error instanceof LockAbortedError)) this.spans.fail(span, this.call.key, error);
    span.end(end);
  }
}
