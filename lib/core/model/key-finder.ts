import { processWide } from '../util/process-wide.js';

/** Finds the key that a call of a decorated method takes. */
export type KeyFinder = (
  type: { readonly prototype: unknown; readonly name: string },
  method: string | symbol,
  args: readonly unknown[],
) => string;

/** The key finder of each `Locks` of a Nest app. */
export const keyFinders = processWide('key-finders', () => new WeakMap<object, KeyFinder>());
