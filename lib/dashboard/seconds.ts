import type { KeyEvent } from '../core/model/key-report.js';
import type { Second } from './dashboard.protocol.js';
import type { LiveTable } from './live-table.js';

/** Ten minutes. */
const MOST = 600;

/** Sums of each second in which somebody looked. */
export class Seconds {
  readonly all: Second[] = [];
  private waits: number[] = [];
  private holds: number[] = [];
  private lost = 0;
  private timeouts = 0;

  add({ event, waited, held }: KeyEvent): void {
    if (event === 'acquired' && waited !== undefined) this.waits.push(waited);
    if (event === 'released' && held !== undefined) this.holds.push(held);
    if (event === 'lost') this.lost++;
    if (event === 'timeout') this.timeouts++;
  }

  /** Ends a second. */
  take(table: LiveTable): Second {
    const { lost, timeouts } = this;
    const [waits, holds] = [this.waits, this.holds].map((times) => times.sort((a, b) => a - b)) as [number[], number[]];
    let [held, waiting] = [0, 0];
    for (const { holders, waiting: callers, more } of table.keys.values()) {
      held += holders.size;
      waiting += callers.length + more;
    }
    const second: Second = {
      ...{ at: Date.now(), held, waiting, lost, timeouts },
      ...{ waitP50: partOf(waits, 0.5), waitP95: partOf(waits, 0.95), holdP95: partOf(holds, 0.95) },
    };
    [this.waits, this.holds, this.lost, this.timeouts] = [[], [], 0, 0];
    this.all.push(second);
    if (this.all.length > MOST) this.all.shift();
    return second;
  }
}

/** @param sorted ascending. */
function partOf(sorted: readonly number[], part: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;
}
