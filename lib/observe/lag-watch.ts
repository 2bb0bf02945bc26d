import { after, now } from '../core/util/clock.js';

/** Milliseconds. A shorter stall may pass between two looks. */
const INTERVAL = 100;

/** Measures by how much the event loop is late. Its timer does not keep the process alive. */
export class LagWatch {
  private timer: NodeJS.Timeout | undefined;

  /** @param tell is called ten times a second with the lag, in seconds. */
  constructor(private readonly tell: (seconds: number) => void) {}

  start(): void {
    if (this.timer) return;
    const dueAt = now() + INTERVAL;
    this.timer = after(INTERVAL, () => {
      this.timer = undefined;
      this.start();
      try {
        this.tell(Math.max(0, now() - dueAt) / 1000);
      } catch {
        // A registry that fails says so with the next request.
      }
    }).unref();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
