import type { LockStore } from './lock-store.js';

/** What a store tells its operators: it goes to the logs of all {@link Locks} on it. What comes before there are any waits for the first. */
export class StoreWarnings {
  private readonly listeners = new Set<(message: string) => void>();
  private readonly early: string[] = [];

  /** As {@link LockStore.onWarning}. */
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
