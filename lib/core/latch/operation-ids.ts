import { randomUUID } from 'node:crypto';
import type { LatchOperation } from '../store/latch-driver.js';

/**
 * Gives each change of a latch an id of its own, in as few lines as there are changes at a time: so a store has little to remember, however
 * many there are one after the other.
 *
 * After "Implementing Linearizability at Large Scale and Low Latency" (RIFL, Lee et al., SOSP 2015), without its leases.
 */
export class OperationIds {
  private readonly name = randomUUID();
  private free: number[] = [];
  private lines = 0;
  private open = 0;
  private last = 0;

  /** Runs the work under an operation of its own. What is sent of it once the work has ended comes too late to count. */
  async run<T>(work: (operation: LatchOperation) => Promise<T>): Promise<T> {
    const line = this.free.pop() ?? this.lines++;
    this.open++;
    try {
      return await work({ line: `${this.name}:${line}`, number: ++this.last });
    } finally {
      this.free.push(line);
      // Of a crowd no more is kept than its own time.
      if (--this.open === 0) {
        this.free = [];
        this.lines = 0;
      }
    }
  }
}
