import type { Redis } from 'ioredis';
import type { Locks } from '../../../lib/core.js';
import type { Kind } from '../history/entry.js';
import { HistoryWriter } from '../history/writer.js';
import { Random } from '../random.js';
import { Context } from '../worker/context.js';
import { FencedCounter } from '../worker/fenced-counter.js';
import { runLoads } from '../worker/loads.js';

/** The callers of a chaos worker, of these kinds of lock, over these locks. Nobody reads their history. @returns what stops them, and resolves when all have ended. */
export function startMixedLoad(seed: string, kinds: Kind[], folder: string, resource: Redis, all: readonly Locks[]): () => Promise<void> {
  const stopping = new AbortController();
  const order = { id: 'w0.1', seed, folder, kinds, store: 'redis', target: {}, resource: { path: '' } };
  const history = new HistoryWriter('/dev/null', 'soak');
  const context = new Context(order, new Random(seed), history, all, resource, new FencedCounter(resource), stopping.signal);
  const running = runLoads(context);
  return async () => {
    stopping.abort();
    for (const locks of all) locks.stopWaiting();
    await running;
    context.close();
    history.close();
  };
}
