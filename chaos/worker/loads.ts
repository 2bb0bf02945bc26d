import type { Kind } from '../history/entry.js';
import type { Context, OpenLocks } from './context.js';
import { callMutex } from './mutex.load.js';

interface Load {
  /** callers of each worker */
  readonly callers: number;
  /** one call, which never rejects */
  readonly call: (context: Context, open: OpenLocks) => Promise<void>;
}

export const LOADS: Partial<Record<Kind, Load>> = {
  mutex: { callers: 6, call: callMutex },
};

/** Runs the callers of a worker until it closes its locks. */
export async function runLoads(context: Context): Promise<void> {
  const callers = context.order.kinds.flatMap((kind) => {
    const { callers: count, call } = LOADS[kind]!;
    return Array.from({ length: count }, (_, i) => repeat(context, call, i));
  });
  await Promise.all(callers);
}

async function repeat(context: Context, call: Load['call'], caller: number): Promise<void> {
  const { random, stores, stopping } = context;
  while (!stopping.aborted) {
    await call(context, stores[caller % stores.length]!);
    await context.pause(random.chance(0.1) ? random.int(0, 400) : random.int(2, 40));
  }
}
