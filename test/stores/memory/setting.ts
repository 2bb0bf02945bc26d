import type { LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

/** A store, and the names of the keys in it that are held or waited for. What has ended is swept away within a second or two. */
export function memoryAndRemains(): { store: LockStore; remains: () => string[] } {
  const store = memoryStore();
  const { entries, queues } = store.mutex as unknown as Record<'entries' | 'queues', Map<string, unknown>>;
  const shared = (store.semaphore as unknown as { keys: { keys: Map<string, unknown> } }).keys.keys;
  return { store, remains: () => [...entries.keys(), ...queues.keys(), ...shared.keys()] };
}
