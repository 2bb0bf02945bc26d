import { abortedBy, closed, stopped, type LockError } from '../model/errors.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import { onAbort } from '../util/abort.js';
import { now } from '../util/clock.js';
import { RepeatedRequest } from '../util/repeated-request.js';
import { pollDelay } from '../waiting/backoff.js';

export interface CallSettings {
  /** Milliseconds for which to ask again while the store does not answer; 0: one try. */
  readonly patience: number;
  readonly retryInterval: number;
  readonly signal: AbortSignal | undefined;
}

/** One caller's request, which ends with the first answer of the store. It is sent again only if there was no answer. */
export class LatchRequest<T> extends RepeatedRequest<T> {
  private readonly startedAt = now();
  protected answered!: (reply: T) => void;
  private reject!: (error: LockError) => void;
  /** Of the last request. */
  private error: LockError | undefined;

  /** @param knownFor milliseconds for which the store recognises a repeat. After half of them none is sent, because it takes time to arrive. */
  constructor(
    private readonly runtime: Lifecycle,
    private readonly key: string,
    private readonly settings: CallSettings,
    private readonly request: () => Promise<T>,
    private readonly knownFor = Infinity,
  ) {
    super();
  }

  async run(): Promise<T> {
    const { runtime, key } = this;
    const { signal } = this.settings;
    if (signal?.aborted) throw abortedBy(signal, key);
    runtime.assertOpen(key);
    runtime.acquireBegins();
    const result = new Promise<T>((resolve, reject) => {
      this.answered = resolve;
      this.reject = reject;
    });
    const forget = [
      onAbort(runtime.stopping, () => this.isAsking || this.reject(stopped(key))),
      onAbort(runtime.closed, () => this.reject(closed(key))),
    ];
    if (signal) forget.push(onAbort(signal, () => this.reject(abortedBy(signal, key))));
    this.ask();
    try {
      return await result;
    } finally {
      this.stop();
      for (const each of forget) each();
      runtime.acquireEnds();
    }
  }

  /** A timer can fire long after its time. */
  protected send(): Promise<T> {
    return this.error && now() - this.startedAt > this.knownFor / 2 ? Promise.reject(this.error) : this.request();
  }

  protected unanswered(cause: unknown): void {
    const { key, runtime, settings } = this;
    const error = (this.error = runtime.errorOf(cause, key, this.sentAt));
    const left = Math.min(settings.patience, this.knownFor / 2) - (now() - this.startedAt);
    if (!error.transient || left <= 0) this.reject(error);
    else if (runtime.stopping.aborted) this.reject(stopped(key, error));
    else this.askIn(Math.min(pollDelay(this.attempts, settings.retryInterval, -1), left));
  }
}
