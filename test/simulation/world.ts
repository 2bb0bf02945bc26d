import { setImmediate as turn } from 'node:timers/promises';

/** In the order in which Node does what is due at the same time. */
export const TIMER = 0;
export const MESSAGE = 1;
export const IMMEDIATE = 2;

export interface Happening {
  at: number;
  readonly phase: number;
  readonly order: number;
  readonly run: () => void;
  /** Where it happens, if not in the world outside of all processes. */
  readonly machine?: Machine;
  isOff?: boolean;
}

/** It may stand still, and keeps what happens meanwhile. */
export interface Machine {
  /** @returns whether it happens now. */
  accepts(happening: Happening): boolean;
}

/** Everything that happens, one thing after the other, on a clock that only this order moves. */
export class World {
  /** Milliseconds since the beginning. */
  now = 0;
  /** Messages that did not arrive. */
  lost = 0;
  private readonly heap: Happening[] = [];
  private made = 0;

  /** In whole microseconds, as histories have it. */
  get time(): number {
    return Math.floor(Math.round(this.now * 1e6) / 1000) / 1000;
  }

  at(time: number, run: () => void, machine?: Machine, phase = TIMER): Happening {
    const happening = { at: Math.max(time, this.now), phase, order: this.made++, run, machine };
    this.add(happening);
    return happening;
  }

  /** What a machine has kept happens now. */
  add(happening: Happening): void {
    const { heap } = this;
    happening.at = Math.max(happening.at, this.now);
    let index = heap.push(happening) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (isBefore(heap[parent]!, happening)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = happening;
  }

  async runUntil(end: () => boolean): Promise<void> {
    await turn();
    while (!end()) {
      const next = this.take();
      if (!next) throw new Error('Nothing is left to happen: somebody waits for ever.');
      if (next.isOff) continue;
      this.now = next.at;
      if (next.machine?.accepts(next) === false) continue;
      next.run();
      // All promises that this has settled are done.
      await turn();
    }
  }

  private take(): Happening | undefined {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (!last || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(one: Happening, other: Happening): boolean {
  return one.at - other.at < 0 || (one.at === other.at && (one.phase - other.phase || one.order - other.order) < 0);
}
