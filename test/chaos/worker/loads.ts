import type { Locks } from '../../../lib/core.js';
import type { Kind } from '../history/entry.js';
import type { Context } from './context.js';
import { callLatch } from './latch.load.js';
import { callLeader } from './leader.load.js';
import { callMulti } from './multi.load.js';
import { callMutex } from './mutex.load.js';
import { callReadWrite } from './read-write.load.js';
import { callSemaphore } from './semaphore.load.js';

interface Load {
  /** callers of each worker */
  readonly callers: number;
  /** one call, which never rejects */
  readonly call: (context: Context, locks: Locks, caller: number) => Promise<void>;
}

const LOADS: Record<Kind, Load> = {
  mutex: { callers: 6, call: callMutex },
  'read-write': { callers: 5, call: callReadWrite },
  semaphore: { callers: 4, call: callSemaphore },
  multi: { callers: 3, call: callMulti },
  leader: { callers: 1, call: callLeader },
  latch: { callers: 3, call: callLatch },
};

/** Runs the callers of a worker until it closes its locks. */
export async function runLoads(context: Context): Promise<void> {
  const callers = context.order.kinds.flatMap((kind) => {
    const { callers: count, call } = LOADS[kind];
    return Array.from({ length: count }, (_, caller) => repeat(context, call, caller));
  });
  await Promise.all(callers);
}

async function repeat(context: Context, call: Load['call'], caller: number): Promise<void> {
  const { random, locks, stopping } = context;
  while (!stopping.aborted) {
    await call(context, random.pick(locks), caller);
    await context.pause(random.chance(0.1) ? random.int(0, 400) : random.int(2, 40));
  }
}
