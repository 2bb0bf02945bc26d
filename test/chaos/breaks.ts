import type { Break } from './breaks/break.js';
import { mutexBreaks } from './breaks/mutex.js';
import { otherBreaks } from './breaks/other.js';
import { tableBreaks } from './breaks/table.js';

export const BREAKS: Record<string, Break> = { ...mutexBreaks, ...otherBreaks, ...tableBreaks };

/** @throws {Error} when there is no such break. */
export function breakOf(name: string): Break {
  const broken = BREAKS[name];
  if (!broken) throw new Error(`Unknown break "${name}". Known are: ${Object.keys(BREAKS).join(', ')}`);
  return broken;
}
