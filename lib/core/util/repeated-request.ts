import { after, exactNow, now } from './clock.js';

/** A request, and what is done when it has ended. Both are also done for one that was under way at the time of {@link RepeatedRequest.stop}. */
interface Request<Reply> {
  /** It should reject, not throw. */
  send(): Promise<Reply>;
  answered(reply: Reply): void;
  unanswered(cause: unknown): void;
}

/** Sends a request again and again, one at a time, until it is stopped. It begins with {@link RepeatedRequest.ask}. */
export function repeat<Reply>(request: Request<Reply>): RepeatedRequest<Reply> {
  return new RepeatedRequest(request);
}

class RepeatedRequest<Reply> {
  attempts = 0;
  /** When the last request was sent, on the monotonic clock. */
  sentAt = 0;
  isAsking = false;
  /** Resolves when the last request has ended. */
  settled!: Promise<void>;
  private phase: 'idle' | 'due' | 'stopped' = 'idle';
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly request: Request<Reply>) {}

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
      reply = await this.request.send();
    } catch (cause) {
      this.isAsking = false;
      return this.request.unanswered(cause);
    }
    this.isAsking = false;
    this.request.answered(reply);
  }
}

export type { RepeatedRequest };
