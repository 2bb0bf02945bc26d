import type { LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

interface Hold {
  readonly owner: string;
  readonly count: number;
  endsAt: number;
}

/** What the store keeps of a key. A lock has holds and a queue, a latch has waiters. */
interface Internals {
  readonly holds: readonly Hold[];
  readonly queue?: { readonly line: readonly { owner: string }[] };
  soonest: number;
  readonly waiters: ReadonlySet<string>;
}

/** The records of a memory store by key, with those that have ended until they are swept away within a second or two. */
export function recordsOf(store: LockStore): ReadonlyMap<string, Internals> {
  return (store.mutex as unknown as { records: { records: Map<string, Internals> } }).records.records;
}

/** A store, and the names of the keys in it that are in use. */
export function memoryAndRemains(): { store: LockStore; remains: () => string[] } {
  const store = memoryStore();
  return { store, remains: () => [...recordsOf(store).keys()] };
}
