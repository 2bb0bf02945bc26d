import { types } from 'node:util';
import { definitionOf, joinPointOf } from '../aspect/distributed-lock.join-point.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import { DECORATORS } from '../decorators/lock-kind.js';

/** A startup warning about one method: legal code that is probably a mistake. */
export interface Advice {
  /** The lock that the warning is about. */
  readonly definition: LockDefinition;
  readonly level: 'warn' | 'debug';
  readonly message: string;
}

/**
 * @param prototype of the class that declares the method.
 * @param current the present value of the method.
 */
export function adviceOn(prototype: object, method: string | symbol, current: unknown): Advice | undefined {
  if (typeof current !== 'function') return undefined;
  const joinPoint = joinPointOf(prototype, method);
  if (joinPoint) return joinPoint === current ? undefined : adviceOnWrapper(joinPoint, current);
  const inherited = definitionOf(current) ? undefined : inheritedLock(prototype, method);
  return inherited && adviceOnOverride(prototype, method, current, inherited);
}

/** The order of decorators matters for a transaction: it must be committed before the lock is released. */
function adviceOnWrapper(joinPoint: object, wrapper: object): Advice {
  const definition = definitionOf(joinPoint) as LockDefinition;
  const above = `${definition.where}: another decorator above it wraps the method, and works outside of the lock.`;
  // The source of a proxy cannot be read. The @Transactional() of nestjs-cls makes one.
  const isTransaction = types.isProxy(wrapper) || /transaction/i.test(Function.prototype.toString.call(wrapper));
  return isTransaction
    ? {
        definition,
        level: 'warn',
        message: `${above} If it opens a transaction, the lock is released before the commit: write ${DECORATORS[definition.kind]} above it.`,
      }
    : { definition, level: 'debug', message: above };
}

/** No warning for an override that calls its parent's method, because the parent's method takes the lock. */
function adviceOnOverride(prototype: object, method: string | symbol, override: object, definition: LockDefinition): Advice | undefined {
  if (/super/.test(Function.prototype.toString.call(override))) return undefined;
  const name = `${prototype.constructor.name}.${String(method)}`;
  return {
    definition,
    level: 'warn',
    message: `${name} overrides ${definition.className}.${String(method)} without its ${DECORATORS[definition.kind]}: it runs unlocked. Decorate it too, or call the parent's method in it.`,
  };
}

function inheritedLock(prototype: object, method: string | symbol): LockDefinition | undefined {
  for (let level = Object.getPrototypeOf(prototype) as object | null; level; level = Object.getPrototypeOf(level) as object | null) {
    const own = Object.getOwnPropertyDescriptor(level, method);
    if (own) return definitionOf(joinPointOf(level, method) ?? own.value);
  }
  return undefined;
}
