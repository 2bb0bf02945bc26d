import { now } from '../../core/util/clock.js';

/** Milliseconds between two sweeps, at least; twice as many at most. */
const INTERVAL = 300_000;

/** Deletes what ended an hour ago, from time to time: every process does it, at random times. */
export class RecordSweep {
  /** One of so many processes sweeps with its first request: processes that end soon, as cron jobs do, would never sweep. Set in tests. */
  static firstOf = 20;
  private at = Math.random() * RecordSweep.firstOf < 1 ? -Infinity : next();

  /** @param sweep leaves what it cannot delete to the next time. */
  constructor(private readonly sweep: () => Promise<unknown>) {}

  /** To be called with each request. */
  ifDue(): void {
    if (now() < this.at) return;
    this.at = next();
    void this.sweep().catch(() => undefined);
  }
}

function next(): number {
  return now() + INTERVAL * (1 + Math.random());
}
