import { processWide } from '../util/process-wide.js';
import type { LockStore } from './lock-store.js';

const users = processWide('users', () => new WeakMap<LockStore, number>());

/** To be called by each `Locks` of a store. */
export function joinStore(store: LockStore): void {
  users.set(store, (users.get(store) ?? 0) + 1);
}

/** The last `Locks` of a store closes it. */
export async function leaveStore(store: LockStore): Promise<void> {
  const others = (users.get(store) ?? 1) - 1;
  users.set(store, others);
  if (others === 0) await store.close();
}
