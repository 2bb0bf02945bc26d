/**
 * A value that all copies of this package in one process share. A feature library may bring its own copy.
 *
 * @param name must never change, because copies of different versions may meet.
 */
export function processWide<T>(name: string, make: () => T): T {
  const slot = Symbol.for(`nestjs-distributed-lock:${name}`);
  return ((globalThis as Record<symbol, unknown>)[slot] ??= make()) as T;
}
