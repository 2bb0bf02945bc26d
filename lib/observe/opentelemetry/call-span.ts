import type { Attributes, Context, Link } from '@opentelemetry/api';
import { LockAbortedError, LockTimeoutError, type LockError } from '../../core/model/errors.js';
import type { LockEvent, LockEvents } from '../../core/model/events.js';
import type { CallTrace, ObservedLease } from '../../core/model/telemetry.js';
import type { CallSpans } from './call-spans.js';

/** The spans of one call: of its wait, if it had to wait, and of its hold. A free lock costs one span. */
export class CallSpan implements CallTrace {
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
