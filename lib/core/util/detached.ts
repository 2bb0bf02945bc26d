import { AsyncResource } from 'node:async_hooks';

/** Where Node keeps the values of all AsyncLocalStorages: for each of them (to Node 22, and without its async context frames), or together. */
const CONTEXT = ['kResourceStore', 'context_frame'];

// Made by whoever imports this first, perhaps in the midst of a request. No public way leads out of a context, so that what a resource has
// of it is taken from it. A Node that keeps it elsewhere keeps the context of the import.
const nowhere = new AsyncResource('nestjs-distributed-lock', { requireManualDestroy: true });
for (const slot of Object.getOwnPropertySymbols(nowhere)) {
  if (CONTEXT.includes(slot.description ?? '')) (nowhere as unknown as Record<symbol, unknown>)[slot] = undefined;
}

/**
 * Runs the work outside of every call chain. A timer or a socket keeps the chain in which it was made, with all that hangs on it; those that
 * outlive the call that happens to make them are made here.
 */
export function detached<T>(work: () => T): T {
  return nowhere.runInAsyncScope(work);
}
