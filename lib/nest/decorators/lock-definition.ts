import { configError } from '../../core/model/errors.js';
import { EXCHANGED, processWide } from '../../core/util/process-wide.js';
import type { AnyDecoratorOptions, LockKind, ReturnKind } from '../distributed-lock.options.js';

/** The names of the decorators in messages, by the kind of lock that they take. */
export const DECORATORS: Readonly<Record<LockKind, string>> = {
  mutex: '@DistributedLock()',
  cron: '@CronLock()',
  read: '@ReadLock()',
  write: '@WriteLock()',
  semaphore: '@Semaphore()',
  leader: '@LeaderOnly()',
};

export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** The lock of a decorated method. */
export interface LockDefinition {
  readonly kind: LockKind;
  /** For messages: the decorator, the class and the method. */
  readonly where: string;
  readonly className: string;
  readonly method: string | symbol;
  /** The method without this lock. */
  readonly original: Method;
  readonly options: AnyDecoratorOptions;
  /** The name of the election of {@link LeaderOnly}. */
  readonly election?: string;
  /** The kind of its result, if that is known when the class is defined. */
  readonly returns: ReturnKind | undefined;
  /** The lock of the next decorator below on the same method. */
  readonly inner: LockDefinition | undefined;
}

/** A definition, and the function that took the place of the method. */
export interface LockedMethod {
  readonly definition: LockDefinition;
  readonly joinPoint: Method;
}

const lockedMethods = processWide('join-points', () => new WeakMap<object, Map<string | symbol, LockedMethod>>(), EXCHANGED);

/** The locked methods of a class, but not those of its parents; of several locks on one method, the uppermost. */
export function lockedMethodsOf(prototype: object): ReadonlyMap<string | symbol, LockedMethod> | undefined {
  return lockedMethods.get(prototype);
}

export function recordLockedMethod(prototype: object, locked: LockedMethod): void {
  const known = lockedMethods.get(prototype);
  if (known) known.set(locked.definition.method, locked);
  else lockedMethods.set(prototype, new Map([[locked.definition.method, locked]]));
}

const KINDS: Record<string, ReturnKind | 'sync'> = {
  AsyncFunction: 'promise',
  AsyncGeneratorFunction: 'iterable',
  GeneratorFunction: 'sync',
};

/**
 * Finds out what a method returns: from its kind of function, else from the option `returns`, else from a lock below, else from its declared type;
 * else `undefined`.
 *
 * @param declared reads the declared type from its metadata, which is slow.
 * @param lower the lock of the next decorator below. Between the two there may be other decorators.
 * @throws {LockConfigError} if it is known to be sync, or is a kind of function that does not return what `returns` says.
 */
export function returnKindOf(
  method: Method,
  declared: () => unknown,
  returns: ReturnKind | undefined,
  where: string,
  lower: LockedMethod | undefined,
): ReturnKind | undefined {
  const ofLower = lower?.definition.returns;
  const known =
    (lower?.joinPoint === method ? ofLower : KINDS[method.constructor.name]) ?? returns ?? ofLower ?? kindOfType(declared(), where);
  if (known === 'sync') {
    throw configError(
      'METHOD',
      `${where}: the method is synchronous. A lock can only be waited for by one that returns a Promise, an Observable or an async iterable.`,
    );
  }
  if (returns && known !== returns) {
    throw configError('OPTION', `${where}: "returns" is "${returns}", but the method returns: ${known}.`);
  }
  return known;
}

/** TypeScript emits `Object` or `Function` for a type that is no class or is imported by `import type`, and nothing if there is no type. */
function kindOfType(declared: unknown, where: string): ReturnKind | 'sync' | undefined {
  if (typeof declared !== 'function' || declared === Object || declared === Function) return undefined;
  const prototype = declared.prototype as object | undefined;
  if (!prototype) return undefined;
  if ('then' in prototype) return 'promise';
  if ('subscribe' in prototype) return 'observable';
  if (!(Symbol.asyncIterator in prototype)) return 'sync';
  // The caller would find no `pipe` on what the lock returns.
  if ('pipe' in prototype) throw configError('METHOD', `${where}: not for a Node stream: declare AsyncIterable, and returns: 'iterable'.`);
  return 'iterable';
}
