import type { LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import type { KeyRecord } from '../../../lib/stores/records/record.work.js';

/** What the store keeps of a key; a free one for its last token. */
interface Row {
  readonly record: KeyRecord | undefined;
}

/** The rows of a memory store by key, with those that have ended until they are swept away within a second or two. */
export function rowsOf(store: LockStore): ReadonlyMap<string, Row> {
  return (store.inspector as unknown as { recordQueue: { rows: Map<string, Row> } }).recordQueue.rows;
}

/** A store, and the names of the keys in it that are in use. */
export function memoryAndRemains(): { store: LockStore; remains: () => string[] } {
  const store = memoryStore();
  return { store, remains: () => [...rowsOf(store)].filter(([, { record }]) => record).map(([key]) => key) };
}
