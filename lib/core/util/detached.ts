import { AsyncResource } from 'node:async_hooks';

/** Where Node keeps the values of all AsyncLocalStorages: one by one (up to Node 22, or without async context frames), or together. */
const CONTEXT = ['kResourceStore', 'context_frame'];

// The first import may happen during a request, and Node has no public way out of its context. So the context is deleted from the resource. If a Node
// version keeps it in another place, the context of the import stays.
const nowhere = new AsyncResource('nestjs-distributed-lock', { requireManualDestroy: true });
for (const slot of Object.getOwnPropertySymbols(nowhere)) {
  if (CONTEXT.includes(slot.description ?? '')) Reflect.set(nowhere, slot, undefined);
}
// The resource stays usable after its destroy event. Without this, Jest would call it an open handle.
nowhere.emitDestroy();

/**
 * Runs the work outside of every call chain. A timer or a socket keeps the chain in which it was made in memory. One that outlives the call that
 * makes it is made here.
 */
export function detached<T>(work: () => T): T {
  return nowhere.runInAsyncScope(work);
}
