import type { Redis } from 'ioredis';
import type { Locks } from '../../../lib/core.js';
import type { HistoryWriter } from '../history/writer.js';
import type { Random } from '../random.js';
import type { FencedCounter } from './fenced-counter.js';
import type { WorkerOrder } from './order.js';
import { UnguardedCounter } from './unguarded-counter.js';

/** Locks of a worker, with what its calls must know of their store. */
export interface OpenLocks {
  readonly locks: Locks;
  readonly requestTimeout: number;
}

/** The part that the loads of one worker share. */
export class Context {
  private readonly counters = new Map<string, UnguardedCounter>();
  private calls = 0;

  constructor(
    readonly order: WorkerOrder,
    readonly random: Random,
    readonly history: HistoryWriter,
    readonly stores: readonly OpenLocks[],
    /** the server that no fault touches */
    readonly resource: Redis,
    readonly fenced: FencedCounter,
    /** aborts when the worker closes its locks */
    readonly stopping: AbortSignal,
  ) {}

  nextId(): string {
    return `${this.order.id}-${++this.calls}`;
  }

  counter(key: string): UnguardedCounter {
    let counter = this.counters.get(key);
    if (!counter) this.counters.set(key, (counter = new UnguardedCounter(this.order.folder, key)));
    return counter;
  }

  close(): void {
    for (const counter of this.counters.values()) counter.close();
    this.counters.clear();
  }

  /** A pause of a caller, not shortened by the end of the run: it is at most a few seconds long. */
  async pause(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}
