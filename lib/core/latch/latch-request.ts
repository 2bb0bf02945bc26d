import { onAbort } from '../util/abort.js';
import { after, now } from '../util/clock.js';
import { abortedBy, asStoreError, closed, stopped, type LockError } from '../model/errors.js';
import { pollDelay } from '../waiting/backoff.js';
import type { Lifecycle } from '../holding/lifecycle.js';

export interface CallSettings {
  /** Milliseconds for which to ask again where the store does not answer; 0: one try. */
  readonly patience: number;
  readonly retryInterval: number;
  readonly signal: AbortSignal | undefined;
}

/** One caller's request that the store answers whatever it finds: it is sent again only where there is no answer. */
export class LatchRequest<T> {
  private readonly startedAt = now();
  private readonly forget: (() => void)[] = [];
  private attempts = 0;
  private isAsking = false;
  private isOver = false;
  private timer: NodeJS.Timeout | undefined;
  private resolve!: (value: T) => void;
  private reject!: (error: LockError) => void;

  /**
   * @param knownFor milliseconds for which the store knows a repeat for what it is: none is sent after half of them, since it takes its time.
   */
  constructor(
    private readonly runtime: Lifecycle,
    private readonly key: string,
    private readonly settings: CallSettings,
    private readonly send: () => Promise<T>,
    private readonly knownFor = Infinity,
  ) {}

  async run(): Promise<T> {
    const { runtime, key } = this;
    const { signal } = this.settings;
    if (signal?.aborted) throw abortedBy(signal, key);
    runtime.assertOpen(key);
    runtime.acquireBegins();
    try {
      return await new Promise<T>((resolve, reject) => {
        this.resolve = resolve;
        this.reject = reject;
        if (signal) this.forget.push(onAbort(signal, () => this.fail(abortedBy(signal, key))));
        this.forget.push(
          onAbort(runtime.stopping, () => this.isAsking || this.fail(stopped(key))),
          onAbort(runtime.closed, () => this.fail(closed(key))),
        );
        this.ask();
      });
    } finally {
      this.isOver = true;
      clearTimeout(this.timer);
      for (const forget of this.forget) forget();
      runtime.acquireEnds();
    }
  }

  private ask(): void {
    this.attempts++;
    this.isAsking = true;
    sent(() => this.send()).then(this.resolve, (cause: unknown) => this.unanswered(asStoreError(cause, this.key)));
  }

  private unanswered(error: LockError): void {
    if (this.isOver) return;
    this.isAsking = false;
    const { patience, retryInterval } = this.settings;
    const left = Math.min(patience, this.knownFor / 2) - (now() - this.startedAt);
    if (!error.transient || left <= 0) return this.fail(error);
    if (this.runtime.stopping.aborted) return this.fail(stopped(this.key, error));
    this.timer = after(Math.min(pollDelay(this.attempts, retryInterval, -1), left), () => this.ask());
  }

  private fail(error: LockError): void {
    this.isOver = true;
    clearTimeout(this.timer);
    this.reject(error);
  }
}

/** A driver that throws has rejected. */
export async function sent<T>(send: () => Promise<T>): Promise<T> {
  return send();
}
