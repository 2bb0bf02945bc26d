import type { LockStore } from 'nestjs-distributed-lock';

/** The keys of all who hold or wait at this memory store: one for each leader and each standby. */
export function candidatesAt(store: LockStore): string[] {
  const { entries, queues } = store.mutex as unknown as { entries: Map<string, unknown>; queues: Map<string, readonly string[]> };
  return [...entries.keys(), ...[...queues].flatMap(([key, owners]) => owners.map(() => key))].sort();
}
