import { asStoreError, LockAbortedError, LockConfigError, refusalIn, type LockError } from '../model/errors.js';
import type { LockEventEmitter } from '../model/events.js';
import type { CallTracing } from '../model/telemetry.js';
import type { Tenancy } from '../store/lease-driver.js';
import type { StoreWatch } from '../store/store-watch.js';
import { idle, now } from '../util/clock.js';

const FIRST_PAUSE = 50;
/** Between two tries at a store that does not answer. */
const LONGEST_PAUSE = 1000;

/** A caller that asks for a key, a body that runs under a lease, and what is released or given up in the background. */
type Work = 'acquire' | 'body' | 'cleanUp';

/** The common state of all locks over one store: their events, their requests in flight, and whether they are being closed. */
export class Lifecycle {
  private readonly stop = new AbortController();
  private readonly end = new AbortController();
  /** Aborts when callers must not wait any more. Free keys are still granted. */
  readonly stopping: AbortSignal = this.stop.signal;
  /** Aborts when nothing is granted any more. */
  readonly closed: AbortSignal = this.end.signal;
  /** The elections in which this process is a candidate. */
  readonly candidates = new Set<{ readonly key: string; isLeader(): boolean }>();
  /**
   * The part of a third of the `keyTimeout` after which a share of a key is renewed first. Many processes can be granted a share at the same moment: so
   * they do not all change the key at once, time and again.
   */
  readonly firstRenewal = (1 + 2 * Math.random()) / 3;
  /** Until when the end of the locks waits for what is given up, on the monotonic clock. It is set when they are closed. */
  cleanUpEnd = Infinity;
  /** A lease lasts: operators may ask what it is for. */
  openInbox = (): void => undefined;
  /** Follows each call that asks for a key. */
  tracing: CallTracing | undefined;
  private readonly running = { acquire: 0, body: 0, cleanUp: 0 };
  private onChange: (() => void)[] = [];

  constructor(
    readonly events: LockEventEmitter,
    /** Milliseconds within which the store answers each request, or rejects it. */
    readonly requestTimeout: number,
    /** Makes a new owner id, that ends with the trace of its caller if there is one. */
    readonly createOwner: (trace?: string) => string,
    readonly storeWatch: StoreWatch,
  ) {}

  stopWaiting(): void {
    this.stop.abort();
  }

  close(): void {
    this.stopWaiting();
    // What is released now may fail with a broken connection. It is sent once more over the next one.
    this.cleanUpEnd = now() + 4 * this.requestTimeout;
    this.end.abort();
  }

  assertOpen(key: string): void {
    if (this.closed.aborted) throw new LockAbortedError(`Cannot acquire "${key}": the locks are closed.`, { key, reason: 'shutdown' });
  }

  begins(work: Work): void {
    this.running[work]++;
  }

  ends(work: Work): void {
    this.running[work]--;
    const waiting = this.onChange;
    if (waiting.length === 0) return;
    this.onChange = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when no work of these kinds is under way. */
  async ended(...kinds: readonly Work[]): Promise<void> {
    while (kinds.some((kind) => this.running[kind] > 0)) await new Promise<void>((resolve) => this.onChange.push(resolve));
  }

  inBackground(work: Promise<unknown>): void {
    const ended = (): void => this.ends('cleanUp');
    this.begins('cleanUp');
    work.then(ended, ended);
  }

  /**
   * Gives up in the background what an owner may have at the store. It is sent again until the store does it, or everything has expired at `end` (on the
   * monotonic clock). An error that is final for a caller is none here, because the key may be taken: the first repeats come soon, the others more and more
   * rarely, and the end of the locks waits for one of them only. The promise never rejects.
   *
   * @param error of the first try, if there was one, as {@link unknown} has returned it.
   */
  async giveUp(
    operation: 'leave' | 'release',
    tenancy: Tenancy,
    end: number,
    send: () => Promise<unknown>,
    error?: LockError,
  ): Promise<void> {
    this.begins('cleanUp');
    const longestPause = (end - now()) / 3;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, error.transient ? LONGEST_PAUSE : longestPause)) {
      try {
        await send();
        break;
      } catch (cause) {
        error = error ? this.failed(operation, tenancy, cause) : this.unknown(operation, tenancy, cause);
      }
      const isClosed = this.closed.aborted;
      if (now() + pause >= end || (isClosed && !error.transient)) break;
      // What may be left of an acquire ends by itself.
      if (isClosed && operation === 'leave' && refusalIn(error)) break;
      await idle(pause, isClosed ? [] : [this.closed]);
    }
    this.ends('cleanUp');
  }

  /** The error of a request that was sent at this time. */
  errorOf(cause: unknown, key: string, sentAt?: number): LockError {
    const error = asStoreError(cause, key);
    this.storeWatch.failed(error, sentAt);
    return error;
  }

  /** A request got no answer. Whether it was applied is unknown. */
  unknown(operation: 'renew' | 'leave' | 'release', tenancy: Tenancy, cause: unknown, sentAt?: number): LockError {
    const { key, owner } = tenancy;
    const error = this.failed(operation, tenancy, cause, sentAt);
    // The store answered that the program is wrong.
    if (!(error instanceof LockConfigError)) this.events.emit('unknown', { key, owner, operation, error });
    return error;
  }

  private failed(operation: string, { key, owner }: Tenancy, cause: unknown, sentAt?: number): LockError {
    const error = this.errorOf(cause, key, sentAt);
    this.events.debug(() => `Could not ${operation} "${key}": ${error.message}`, { key, owner, once: `could not ${operation}` });
    return error;
  }
}
