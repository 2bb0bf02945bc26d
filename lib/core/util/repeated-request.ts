import { after, exactNow, now } from './clock.js';

/** Sends a request again and again, one at a time, until it is stopped. */
export abstract class RepeatedRequest<Reply> {
  attempts = 0;
  /** When the last request was sent, on the monotonic clock. */
  sentAt = 0;
  isAsking = false;
  /** Resolves after {@link answered} or {@link unanswered} was called for the last request. */
  settled!: Promise<void>;
  private phase: 'idle' | 'due' | 'stopped' = 'idle';
  private timer: NodeJS.Timeout | undefined;

  get isStopped(): boolean {
    return this.phase === 'stopped';
  }

  /** Milliseconds since the request in flight was sent; 0: there is none. */
  get silence(): number {
    return this.isAsking ? now() - this.sentAt : 0;
  }

  /** Asks now, or again when the request under way has been answered. */
  ask(): void {
    if (this.isStopped) return;
    if (this.isAsking) {
      this.phase = 'due';
      return;
    }
    clearTimeout(this.timer);
    this.phase = 'idle';
    this.isAsking = true;
    this.attempts++;
    this.sentAt = exactNow();
    this.settled = this.settle();
  }

  /** Asks after so many milliseconds; at once if {@link ask} was called while the last request was under way. */
  askIn(delay: number, before?: () => void): void {
    if (this.isStopped || this.isAsking) return;
    if (this.phase === 'due') return this.ask();
    clearTimeout(this.timer);
    this.timer = after(delay, () => {
      before?.();
      this.ask();
    });
  }

  stop(): void {
    this.phase = 'stopped';
    clearTimeout(this.timer);
  }

  private async settle(): Promise<void> {
    let reply: Reply;
    try {
      reply = await this.send(); // it should reject, not throw
    } catch (cause) {
      this.isAsking = false;
      return this.unanswered(cause);
    }
    this.isAsking = false;
    this.answered(reply);
  }

  protected abstract send(): Promise<Reply>;

  /** Called with the reply. Both this and {@link unanswered} are also called for a request that was under way at the time of {@link stop}. */
  protected abstract answered(reply: Reply): void;

  protected abstract unanswered(cause: unknown): void;
}
