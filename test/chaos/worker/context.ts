import type { Locks } from '../../../lib/core.js';
import type { HistoryWriter } from '../history/writer.js';
import type { Random } from '../random.js';
import type { FencedCounter } from './fenced-counter.js';
import type { WorkerOrder } from './order.js';
import { UnguardedCounter } from './unguarded-counter.js';

export type Counter = Pick<UnguardedCounter, 'read' | 'writeIfValid' | 'close'>;

/** Lists of texts that all workers share. */
export interface Jobs {
  rpush(list: string, ...jobs: string[]): Promise<number>;
  lpop(list: string): Promise<string | null>;
}

/** The part that the loads of one worker share. */
export class Context {
  private readonly counters = new Map<string, Counter>();
  private calls = 0;

  constructor(
    readonly order: Pick<WorkerOrder, 'id' | 'kinds' | 'folder'>,
    readonly random: Random,
    readonly history: Pick<HistoryWriter, 'write'>,
    readonly locks: readonly Locks[],
    /** the server that no fault touches */
    readonly resource: Jobs,
    readonly fenced: Pick<FencedCounter, 'read' | 'write'>,
    /** aborts when the worker closes its locks */
    readonly stopping: AbortSignal,
    private readonly openCounter: (key: string) => Counter = (key) => new UnguardedCounter(order.folder, key),
  ) {}

  readonly nextId = (): string => `${this.order.id}-${++this.calls}`;

  counter(key: string): Counter {
    let counter = this.counters.get(key);
    if (!counter) this.counters.set(key, (counter = this.openCounter(key)));
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
