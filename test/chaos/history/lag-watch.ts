import { now } from './clock.js';
import type { HistoryWriter } from './writer.js';

const EVERY = 20;
/** Smaller ones explain nothing. */
const NOTED = 30;

/** Notes each time in which this process did not run: stopped, blocked, or kept waiting by a loaded machine. */
export class LagWatch {
  private last = now();
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly history: HistoryWriter) {
    this.timer = setInterval(() => this.look(), EVERY);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const t = now();
    const ms = t - this.last - EVERY;
    this.last = t;
    if (ms > NOTED) this.history.write({ e: 'lag', ms }, t);
  }
}
