import { LockConfigError } from '../../core/model/errors.js';
import type { AnyDecoratorOptions, ReturnKind } from '../distributed-lock.options.js';
import type { LockKind } from './lock-kind.js';

/** The lock of a decorated method. It is metadata of the join point. */
export interface LockDefinition {
  readonly kind: LockKind;
  /** For messages: the decorator, the class and the method. */
  readonly where: string;
  readonly className: string;
  readonly method: string | symbol;
  readonly options: AnyDecoratorOptions;
  /** The name of the election of {@link LeaderOnly}. */
  readonly election?: string;
  /** What the method returns, if it is known when the class is defined. */
  readonly returns: ReturnKind | undefined;
  /** The lock of the next decorator below on the same method. */
  readonly inner: LockDefinition | undefined;
}

const KINDS: Record<string, ReturnKind | 'sync'> = {
  AsyncFunction: 'promise',
  AsyncGeneratorFunction: 'iterable',
  GeneratorFunction: 'sync',
};

/**
 * What a method returns: known from its kind of function, else from the option `returns`, else from its declared type; else `undefined`.
 *
 * @param ofLower the return kind of a lock below on the same method.
 * @throws {LockConfigError} if it is known to be sync, or is a kind of function that does not return what `returns` says.
 */
export function returnKindOf(
  method: object,
  declared: unknown,
  returns: ReturnKind | undefined,
  where: string,
  ofLower?: ReturnKind,
): ReturnKind | undefined {
  const known = ofLower ?? KINDS[method.constructor.name] ?? returns ?? kindOfType(declared);
  if (known === 'sync') {
    throw new LockConfigError(
      `${where}: the method is synchronous. A lock can only be waited for by one that returns a Promise, an Observable or an async iterable.`,
    );
  }
  if (returns && known !== returns) {
    throw new LockConfigError(`${where}: "returns" is "${returns}", but the method returns: ${known}.`);
  }
  return known;
}

/** TypeScript emits `Object` or `Function` for a type that is no class or is imported by `import type`, and nothing if there is no type. */
function kindOfType(declared: unknown): ReturnKind | 'sync' | undefined {
  if (typeof declared !== 'function' || declared === Object || declared === Function) return undefined;
  const prototype = declared.prototype as object | undefined;
  if (!prototype) return undefined;
  if ('then' in prototype) return 'promise';
  if ('subscribe' in prototype) return 'observable';
  if (Symbol.asyncIterator in prototype) return 'iterable';
  return 'sync';
}
