/**
 * The version of what copies hand to each other in a Nest app: the interceptor, with the calls that it takes, locked methods, registered stores and links
 * to apps. To be raised with each change of one of these types: copies of different versions then share nothing, and each needs a module of its own.
 */
export const EXCHANGED = 1;

/**
 * A value that the copies of this package in one process share: a feature library may bring its own copy, perhaps of another version.
 *
 * @param shape the version of the value's type. A change that an older copy would not understand needs the next one: copies share a value only if both
 *   mean the same by it.
 */
export function processWide<T>(name: string, make: () => T, shape = 1): T {
  const slot = Symbol.for(`nestjs-distributed-lock:${name}:${shape}`);
  return ((globalThis as Record<symbol, unknown>)[slot] ??= make()) as T;
}
