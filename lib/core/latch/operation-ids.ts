import { randomUUID } from 'node:crypto';
import type { LatchOperation } from '../store/latch-driver.js';

/**
 * Gives each change of a latch an id. Sequential changes share a line, so that a store remembers only as many changes as are made at the same
 * time.
 *
 * After "Implementing Linearizability at Large Scale and Low Latency" (RIFL, Lee et al., SOSP 2015), without its leases.
 */
export class OperationIds {
  private readonly name = randomUUID();
  private readonly free: number[] = [];
  private lines = 0;
  private last = 0;

  /** Runs the work under a new operation. A repeat that arrives after the next operation of its line changes nothing. */
  async run<T>(work: (operation: LatchOperation) => Promise<T>): Promise<T> {
    const line = this.free.pop() ?? this.lines++;
    try {
      return await work({ line: `${this.name}:${line}`, number: ++this.last });
    } finally {
      this.free.push(line);
    }
  }
}
