import { memoryStore } from '../../../../lib/stores/memory/memory.store.js';
import type { OpenedStore } from '../store.js';

let store: OpenedStore['store'] | undefined;

/** One store for all locks of the worker: another one would know nothing of their keys. */
export function open(): OpenedStore {
  store ??= memoryStore();
  return { store };
}
