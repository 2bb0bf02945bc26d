import { randomUUID } from 'node:crypto';
import type { LatchOperation } from '../store/latch-driver.js';

/**
 * Gives each change of a latch an id. Changes that follow one another share a line, so that a store remembers only as many of them as were made at
 * the same time.
 *
 * After "Implementing Linearizability at Large Scale and Low Latency" (RIFL, Lee et al., SOSP 2015), without its leases.
 */
export class OperationIds {
  private readonly name = randomUUID();
  private readonly free: number[] = [];
  private lines = 0;
  private last = 0;

  /** Runs the work under an operation of its own. What is sent of it after the work has ended changes nothing once the next one of its line has. */
  async run<T>(work: (operation: LatchOperation) => Promise<T>): Promise<T> {
    const line = this.free.pop() ?? this.lines++;
    try {
      return await work({ line: `${this.name}:${line}`, number: ++this.last });
    } finally {
      this.free.push(line);
    }
  }
}
