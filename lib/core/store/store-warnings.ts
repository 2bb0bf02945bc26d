import type { WarningCode } from '../model/lock-log.js';
import type { LockStore } from './lock-store.js';

/** Warnings of a store to its operators: they go to the logs of all {@link Locks} on it. Those before the first `Locks` wait for it. */
export class StoreWarnings {
  private readonly listeners = new Set<(message: string, code?: WarningCode) => void>();
  private readonly early: [message: string, code?: WarningCode][] = [];

  /** Implements {@link LockStore.onWarning}. */
  readonly on: NonNullable<LockStore['onWarning']> = (listener) => {
    this.listeners.add(listener);
    for (const warning of this.early.splice(0)) listener(...warning);
    return () => void this.listeners.delete(listener);
  };

  readonly warn = (message: string, code?: WarningCode): void => {
    if (this.listeners.size === 0) this.early.push([message, code]);
    for (const listener of this.listeners) listener(message, code);
  };
}
