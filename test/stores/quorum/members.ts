import type { LeaseDriver, LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

export const three = (): [LockStore, LockStore, LockStore] => [memoryStore(), memoryStore(), memoryStore()];

export const request = { key: 'key', owner: 'a', ttl: 10_000, tokens: 1, queue: false };

/** A store whose mutex does some things otherwise. */
export function altered(store: LockStore, changes: (real: LeaseDriver) => Partial<LeaseDriver>): LockStore {
  const { mutex } = store;
  return { ...store, mutex: { ...mutex, ...changes(mutex) } };
}

/** When all that is due has happened, though no time has passed. */
export const nextTurn = (): Promise<void> => new Promise(setImmediate);
