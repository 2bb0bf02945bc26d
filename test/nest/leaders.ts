import type { LockStore } from 'nestjs-distributed-lock';
import { rowsOf } from '../stores/memory/setting.js';

/** The keys of all who hold or wait at this memory store: one for each leader and each standby. */
export function candidatesAt(store: LockStore): string[] {
  const leases = [...rowsOf(store)].flatMap(([key, { record }]) => (record && 'holds' in record ? [{ key, record }] : []));
  return leases.flatMap(({ key, record }) => [...record.holds, ...record.queue].map(() => key)).sort();
}
