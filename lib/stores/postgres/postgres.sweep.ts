import { after } from '../../core/util/clock.js';

const INTERVAL = 600_000;
const MOST = 1000;
/** Milliseconds until the next one if there may be more. */
const PAUSE = 1000;

/** Deletes rows that ended an hour ago, from time to time: every store does it, at times of its own. */
export class PostgresSweep {
  private timer: NodeJS.Timeout | undefined;

  /** @param sweep resolves to the rows that it has deleted. */
  constructor(private readonly sweep: (most: number) => Promise<readonly unknown[]>) {}

  begin(): void {
    this.timer ??= this.in(INTERVAL * (0.5 + Math.random()));
  }

  end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private in(delay: number): NodeJS.Timeout {
    const timer = after(delay, () => {
      void this.sweep(MOST)
        // What is left now is left to the next time.
        .catch(() => [])
        .then(({ length }) => {
          if (this.timer === timer) this.timer = this.in(length < MOST ? INTERVAL * (0.5 + Math.random()) : PAUSE);
        });
    }).unref();
    return timer;
  }
}
