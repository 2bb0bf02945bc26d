import { configError } from '../core/model/errors.js';
import { EXCHANGED, processWide } from '../core/util/process-wide.js';
import type { FenceGuard } from './fence-guard.js';
import type { Run } from './run.js';

type Method = (this: never, ...args: never[]) => Promise<unknown>;

/** The methods that a lock's decorator has wrapped already, by prototype and name. The Nest layer keeps them under this name and version. */
const locked = processWide('join-points', () => new WeakMap<object, Map<string | symbol, unknown>>(), EXCHANGED);

/**
 * Checks first thing in the transaction of a method: `@DistributedLock()` above `@Transactional()` above `@Fenced(…)`.
 *
 * @param fence the guard, or a function that gets it from the instance.
 * @param runOf makes the run of the current transaction from the instance: `(self) => typeorm(self.host.tx)`.
 * @throws {LockConfigError} when the class is defined, if a decorator of a lock is below it.
 */
export function Fenced<Self extends object>(fence: FenceGuard | ((self: Self) => FenceGuard), runOf: (self: Self) => Run) {
  return <M extends Method>(prototype: Self, name: string | symbol, descriptor: TypedPropertyDescriptor<M>): void => {
    const method = descriptor.value;
    const where = `@Fenced() on ${prototype.constructor.name}.${String(name)}`;
    if (typeof method !== 'function') throw configError('FENCE', `${where}: it belongs on a method.`);
    const order = 'Write the lock above, then @Transactional(), then @Fenced().';
    if (locked.get(prototype)?.has(name))
      throw configError('FENCE', `${where}: the lock is below it, so it would run before the lock is taken. ${order}`);
    const call = method as unknown as (this: Self, ...args: unknown[]) => Promise<unknown>;
    const fenced = async function (this: Self, ...args: unknown[]): Promise<unknown> {
      await (typeof fence === 'function' ? fence(this) : fence).check(runOf(this));
      return call.apply(this, args);
    };
    copyMetadata(method, fenced);
    Object.defineProperty(fenced, 'name', { value: method.name, configurable: true });
    descriptor.value = fenced as unknown as M;
  };
}

/** Other decorators of the method keep their metadata on its function. */
function copyMetadata(from: object, to: object): void {
  // `reflect-metadata` adds these functions, where it is loaded.
  const { getOwnMetadataKeys, getOwnMetadata, defineMetadata } = Reflect as Partial<Record<string, (...args: unknown[]) => unknown>>;
  for (const key of (getOwnMetadataKeys?.(from) ?? []) as unknown[]) defineMetadata?.(key, getOwnMetadata?.(key, from), to);
}
