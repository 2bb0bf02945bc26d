import type { LockStore } from '../lib/core.js';
import type { Break } from './breaks/break.js';
import { mutexBreaks } from './breaks/mutex.js';
import { otherBreaks } from './breaks/other.js';

export const BREAKS: Record<string, Break> = { ...mutexBreaks, ...otherBreaks };

/** @throws {Error} when there is no such break. */
export function breakStore(store: LockStore, name: string): LockStore {
  const broken = BREAKS[name];
  if (!broken) throw new Error(`Unknown break "${name}". Known are: ${Object.keys(BREAKS).join(', ')}`);
  return broken.wrap(store);
}
