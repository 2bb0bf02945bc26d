import { asStoreError, LockAbortedError, type LockError } from '../model/errors.js';
import type { LockEventEmitter } from '../model/events.js';
import type { Tenancy } from '../store/lease-driver.js';
import { idle, now } from '../util/clock.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1000;

/** What all locks over one store share: their events, what is under way, and whether they are being closed. */
export class Lifecycle {
  private cleaningUp = 0;
  private readonly stop = new AbortController();
  private readonly end = new AbortController();
  private acquiring = 0;
  private bodies = 0;
  private onChange: (() => void)[] = [];

  constructor(
    readonly events: LockEventEmitter,
    /** Milliseconds within which the store answers each request, or rejects it. */
    readonly requestTimeout: number,
  ) {}

  /** Aborts when nobody may wait any more; free keys are still given. */
  get stopping(): AbortSignal {
    return this.stop.signal;
  }

  /** Aborts when nothing is given any more. */
  get closed(): AbortSignal {
    return this.end.signal;
  }

  stopWaiting(): void {
    this.stop.abort();
  }

  /** From now on nothing is given. */
  close(): void {
    this.stopWaiting();
    this.end.abort();
  }

  assertOpen(key: string): void {
    if (this.end.signal.aborted) throw new LockAbortedError(`Cannot acquire "${key}": the locks are closed.`, { key, reason: 'shutdown' });
  }

  acquireBegins(): void {
    this.acquiring++;
  }

  acquireEnds(): void {
    this.acquiring--;
    this.changed();
  }

  /** A body runs under a lease, which is released when it ends. */
  bodyBegins(): void {
    this.bodies++;
  }

  bodyEnds(): void {
    this.bodies--;
    this.changed();
  }

  /** A release or another clean-up is under way, for which {@link quiet} waits. */
  cleanUpBegins(): void {
    this.cleaningUp++;
  }

  cleanUpEnds(): void {
    this.cleaningUp--;
    this.changed();
  }

  /** Resolves when no body runs any more and none is about to. */
  drained(): Promise<void> {
    return this.when(() => this.acquiring === 0 && this.bodies === 0);
  }

  inBackground(work: Promise<unknown>): void {
    const ended = (): void => this.cleanUpEnds();
    this.cleanUpBegins();
    work.then(ended, ended);
  }

  /**
   * Gives up in the background what an owner may have at the store: again and again until the store has answered, no repetition can help, or `end` has
   * come (on the monotonic clock), when nothing is left to give up. The promise never rejects.
   *
   * @param first what the first try waits for.
   */
  giveUp(
    operation: 'leave' | 'release',
    tenancy: Tenancy,
    end: number,
    send: () => Promise<unknown>,
    first?: Promise<void>,
  ): Promise<void> {
    const givingUp = this.repeat(operation, tenancy, end, send, first);
    this.inBackground(givingUp);
    return givingUp;
  }

  /** A request got no answer: whether it was applied is unknown. */
  unknown(operation: 'renew' | 'leave' | 'release', { key, owner }: Tenancy, cause: unknown): LockError {
    const error = asStoreError(cause, key);
    this.events.debug(`Could not ${operation} "${key}": ${error.message}`);
    this.events.emit('unknown', { key, owner, operation, error });
    return error;
  }

  private async repeat(
    operation: 'leave' | 'release',
    tenancy: Tenancy,
    end: number,
    send: () => Promise<unknown>,
    first?: Promise<void>,
  ): Promise<void> {
    if (first) await first;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        await send();
        return;
      } catch (cause) {
        if (!this.unknown(operation, tenancy, cause).transient || now() >= end) return;
      }
      await idle(pause);
    }
  }

  /** Resolves when nothing is sent to the store any more. */
  quiet(): Promise<void> {
    return this.when(() => this.acquiring === 0 && this.cleaningUp === 0);
  }

  private async when(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.onChange.push(resolve));
  }

  private changed(): void {
    const waiting = this.onChange;
    if (waiting.length === 0) return;
    this.onChange = [];
    for (const resolve of waiting) resolve();
  }
}
