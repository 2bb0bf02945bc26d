import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { LockConfigError } from '../core/errors.js';
import type { ReadLock as ReadSide, WriteLock as WriteSide } from '../primitives/read-write-lock.js';
import type { Semaphore as SemaphoreLock } from '../primitives/semaphore.js';
import { assertParentheses, targetOf } from './decorator-target.js';
import { createJoinPoint, definitionOf, recordJoinPoint } from './distributed-lock.join-point.js';
import {
  checkDecoratorOptions,
  type AnyDecoratorOptions,
  type DistributedLockOptions,
  type ReadWriteDecoratorOptions,
  type SemaphoreDecoratorOptions,
} from './distributed-lock.options.js';
import { INTERCEPTOR, INTERCEPTOR_PROPERTY } from './distributed-lock.tokens.js';
import { returnKindOf } from './lock-definition.js';
import { DECORATORS, type LockKind } from './lock-kind.js';
import type { KeyFunction, Lockable, LockableMethod, ParamPath } from './lockable-method.js';

/** Metadata of a class that asks for the interceptor already, itself or by its parent. */
const INJECTED = 'nestjs-distributed-lock:injected';

/** Fits methods that can wait for a lock, and have the parameters that its options name; on any other it does not compile. */
export type LockDecorator<M extends LockableMethod = LockableMethod, Key = KeyFunction<Parameters<M>>, Path extends string = string> = <T>(
  target: object,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<T> & Lockable<T, M, Key, Path>,
) => void;

/**
 * Runs the method under a distributed lock: takes the key, renews the lease for as long as the method runs, and gives it back when the method
 * has ended. The method returns a Promise, an Observable (locked per subscription) or an async iterable (locked per iteration).
 *
 * A call rejects with {@link LockTimeoutError} when patience ends while another holds the key, with {@link StoreError} when the store is out of
 * reach, with {@link LockAbortedError} when the app is closing, and with {@link LockLostError} when the method succeeded under a lease that was
 * lost.
 *
 * @param options default: one key for the method, `keyTimeout` 1000 ms, 3 tries 500–1000 ms apart.
 * @throws {LockConfigError} when the class is defined, if an option is wrong or the method cannot be locked.
 */
export function DistributedLock<
  M extends LockableMethod = LockableMethod,
  Key extends KeyFunction<Parameters<M>> = KeyFunction<Parameters<M>>,
  Path extends ParamPath<Parameters<M>> = ParamPath<Parameters<M>>,
>(options?: DistributedLockOptions<M, Key, Path>): LockDecorator<M, Key, Path>;
export function DistributedLock(...args: unknown[]): LockDecorator {
  return decorate('mutex', args, args[0]);
}

/**
 * As {@link DistributedLock}, but runs beside other readers of its key; only a {@link WriteLock} keeps it out. Give both the same `value`: by
 * default each method has a key of its own. A reader must not call a writer of its key: that rejects with {@link LockConfigError}.
 *
 * @throws {LockConfigError} as {@link DistributedLock}; at boot, if the key is also used as another kind of lock.
 * @throws {UnsupportedPrimitiveError} at boot, if the store has no such locks.
 */
export function ReadLock<
  M extends LockableMethod = LockableMethod,
  Key extends KeyFunction<Parameters<M>> = KeyFunction<Parameters<M>>,
  Path extends ParamPath<Parameters<M>> = ParamPath<Parameters<M>>,
>(options?: ReadWriteDecoratorOptions<M, Key, Path>): LockDecorator<M, Key, Path>;
export function ReadLock(...args: unknown[]): LockDecorator {
  return decorate('read', args, args[0]);
}

/**
 * As {@link DistributedLock}, and keeps each {@link ReadLock} of its key out, too. A writer may call readers of its key.
 *
 * @throws as {@link ReadLock}.
 */
export function WriteLock<
  M extends LockableMethod = LockableMethod,
  Key extends KeyFunction<Parameters<M>> = KeyFunction<Parameters<M>>,
  Path extends ParamPath<Parameters<M>> = ParamPath<Parameters<M>>,
>(options?: ReadWriteDecoratorOptions<M, Key, Path>): LockDecorator<M, Key, Path>;
export function WriteLock(...args: unknown[]): LockDecorator {
  return decorate('write', args, args[0]);
}

/**
 * As {@link DistributedLock}, but lets as many calls run at a time, in all processes, as there are `permits` for their key.
 *
 * @throws as {@link ReadLock}.
 */
export function Semaphore<
  M extends LockableMethod = LockableMethod,
  Key extends KeyFunction<Parameters<M>> = KeyFunction<Parameters<M>>,
  Path extends ParamPath<Parameters<M>> = ParamPath<Parameters<M>>,
>(options: SemaphoreDecoratorOptions<M, Key, Path>): LockDecorator<M, Key, Path>;
export function Semaphore(...args: unknown[]): LockDecorator {
  return decorate('semaphore', args, args[0]);
}

// In an app the decorators have the names. As types the same names mean the locks that Locks gives; their classes are in the entry `./core`.
export type ReadLock = ReadSide;
export type WriteLock = WriteSide;
export type Semaphore = SemaphoreLock;

/**
 * What all decorators do: checks what is known when the class is defined, and leaves a join point in the method's place.
 *
 * @param args everything that the decorator's factory was called with.
 */
export function decorate(
  kind: LockKind,
  args: readonly unknown[],
  given: unknown = {},
  election?: unknown,
): <T>(target: object, method: string | symbol, descriptor: TypedPropertyDescriptor<T>) => void {
  assertParentheses(args, kind);
  return (target, method, descriptor) => {
    const { className, original, where } = targetOf(DECORATORS[kind], target, method, descriptor);
    const options = given as AnyDecoratorOptions;
    checkDecoratorOptions(options, where, kind);
    if (kind === 'leader' && (typeof election !== 'string' || election === '')) {
      throw new LockConfigError(`${where}: the name of the election must be a string that is not empty.`);
    }
    const { prefix = 'a', value = 'a' } = options;
    if (prefix + value === '') throw new LockConfigError(`${where}: the key is empty: give a "prefix" or a "value".`);
    const declared: unknown = Reflect.getMetadata('design:returntype', target, method);
    const inner = definitionOf(original);
    const returns = returnKindOf(original as object, declared, options.returns, where, inner?.returns);
    const definition = { kind, where, className, method, options, election: election as string | undefined, returns, inner };
    const joinPoint = createJoinPoint(original as LockableMethod, definition);
    descriptor.value = joinPoint as typeof descriptor.value;
    recordJoinPoint(target, method, joinPoint);
    injectOnce(target);
  };
}

function injectOnce(target: object): void {
  const { constructor } = target;
  if (Reflect.hasMetadata(INJECTED, constructor)) return;
  Reflect.defineMetadata(INJECTED, true, constructor);
  Inject(INTERCEPTOR)(target, INTERCEPTOR_PROPERTY);
}
