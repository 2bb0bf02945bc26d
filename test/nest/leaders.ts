import type { LockStore } from 'nestjs-distributed-lock';
import type { LockRecord } from '../../lib/stores/memory/lock-record.js';

/** The keys of all who hold or wait at this memory store: one for each leader and each standby. */
export function candidatesAt(store: LockStore): string[] {
  const { records } = (store.mutex as unknown as { records: { records: Map<string, LockRecord> } }).records;
  return [...records].flatMap(([key, { holds, queue }]) => [...holds, ...placesIn(queue)].map(() => key)).sort();
}

function placesIn(queue: object | undefined): readonly unknown[] {
  return (queue as { line?: readonly unknown[] } | undefined)?.line ?? [];
}
