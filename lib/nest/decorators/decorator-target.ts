import { configError } from '../../core/model/errors.js';
import type { LockKind } from '../distributed-lock.options.js';
import { DECORATORS, type LockDefinition, type Method } from './lock-definition.js';

/** The shortest correct form of each decorator. */
export const EXAMPLES: Record<LockKind, string> = {
  ...DECORATORS,
  cron: '@CronLock({ minHold: 60_000 })',
  semaphore: '@Semaphore({ permits: 5 })',
  leader: "@LeaderOnly('jobs')",
};

/**
 * Without parentheses the compiler passes the method to the factory, ignores the decorator that it returns, and the method runs unlocked.
 *
 * @param args everything that the factory was called with.
 * @throws {LockConfigError} if these are the arguments of a decorator.
 */
export function assertParentheses(args: readonly unknown[], kind: LockKind): void {
  if (!isDecoratorCall(args)) return;
  const [target, method, descriptor] = args;
  const { where } = targetOf(DECORATORS[kind].replace('()', ''), target as object, method as string | symbol | undefined, descriptor);
  throw configError('METHOD', `${where} needs parentheses: ${EXAMPLES[kind]}.`);
}

/**
 * The method that a decorator was applied to. For messages, `where` names the decorator, the class and the method.
 *
 * @param decorator as messages name it.
 * @throws {LockConfigError} unless it is a method of instances, decorated by a legacy decorator.
 */
export function targetOf(
  decorator: string,
  target: object,
  method: string | symbol | undefined,
  descriptor: unknown,
): Pick<LockDefinition, 'className' | 'original' | 'where'> {
  if (isStandardContext(method)) {
    throw configError('METHOD', `${decorator} needs legacy decorators, as Nest does: set "experimentalDecorators" in tsconfig.json.`);
  }
  // A class may have a static method of this name.
  const { name } = (typeof target === 'function' ? target : target.constructor) as { readonly name: unknown };
  const className = (typeof name === 'string' && name) || '(anonymous)';
  if (method === undefined) {
    const what = typeof descriptor === 'number' ? `${className}'s constructor` : `class ${className}`;
    throw configError('METHOD', `${decorator} on ${what}: only methods can be locked, not whole classes and not parameters.`);
  }
  const where = `${decorator} on ${className}.${String(method)}`;
  if (typeof target === 'function')
    throw configError('METHOD', `${where}: a static method has no instance that Nest could give a lock to.`);
  const original: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
  if (typeof original !== 'function') {
    throw configError('METHOD', `${where}: only methods can be locked, not getters, setters, fields or parameters.`);
  }
  return { className, original: original as Method, where };
}

function isDecoratorCall([target, method, descriptor]: readonly unknown[]): boolean {
  if (typeof target === 'string') return false;
  if (isStandardContext(method) || typeof method === 'string' || typeof method === 'symbol') return true;
  // A class, or a parameter of its constructor. An arrow function has no prototype; it can only be a wrong option.
  return typeof target === 'function' && method === undefined && (typeof descriptor === 'number' || 'prototype' in target);
}

/** Recognizes the second argument of an ECMAScript decorator. A legacy one gets the name of the method there. */
function isStandardContext(context: unknown): boolean {
  return typeof context === 'object' && context !== null && 'kind' in context;
}
