import type { LockStore } from './lock-store.js';

/** Warnings of a store to its operators: they go to the logs of all {@link Locks} on it. Those before the first `Locks` wait for it. */
export class StoreWarnings {
  private readonly listeners = new Set<(message: string) => void>();
  private readonly early: string[] = [];

  /** Implements {@link LockStore.onWarning}. */
  readonly on: NonNullable<LockStore['onWarning']> = (listener) => {
    this.listeners.add(listener);
    for (const message of this.early.splice(0)) listener(message);
    return () => void this.listeners.delete(listener);
  };

  readonly warn = (message: string): void => {
    if (this.listeners.size === 0) this.early.push(message);
    for (const listener of this.listeners) listener(message);
  };
}
