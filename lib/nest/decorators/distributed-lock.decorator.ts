import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { configError } from '../../core/model/errors.js';
import type { OnTimeout } from '../../core/model/options.js';
import { assertParentheses, EXAMPLES, targetOf } from './decorator-target.js';
import { createJoinPoint } from '../aspect/join-point.js';
import {
  checkDecoratorOptions,
  type AnyDecoratorOptions,
  type CronLockOptions,
  type DistributedLockOptions,
  type LeaderOnlyOptions,
  type LockKind,
  type ReadWriteDecoratorOptions,
  type SemaphoreDecoratorOptions,
} from '../distributed-lock.options.js';
import { INTERCEPTOR, INTERCEPTOR_PROPERTY } from '../distributed-lock.tokens.js';
import { DECORATORS, lockedMethodsOf, recordLockedMethod, returnKindOf } from './lock-definition.js';
import type { InstanceOnly, KeyOf, Lockable, LockableMethod, OnTimeoutOf, PathOf } from './lockable-method.js';

/** Compiles only on methods that can wait for a lock and have the parameters that the options refer to. */
export type LockDecorator<M extends LockableMethod = LockableMethod, Key = KeyOf<M>, Path extends string = string, On = OnTimeout> = <
  T,
  Target extends object,
>(
  target: Target & InstanceOnly<Target>,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<T> & Lockable<T, M, Key, Path, On>,
) => void;

/**
 * Runs the method under a distributed lock: acquires the key, renews the lease while the method runs, and releases it when the method
 * has ended. The method returns a Promise, an Observable (locked per subscription) or an async iterable (locked per iteration).
 *
 * ```ts
 * @DistributedLock({ value: 'stock', key: (sku: string) => sku })
 * async sell(sku: string): Promise<void> { … }
 * ```
 *
 * A call rejects with {@link LockTimeoutError} if the key is still taken at the end of the wait timeout, and with {@link StoreError} if the store
 * cannot be reached. It rejects with {@link LockAbortedError} if the app is closing, and with {@link LockLostError} if the method succeeded but its
 * lease was lost.
 *
 * @param options default: one key for the method. What is left out comes from the defaults of the module, then: a `keyTimeout` of 10,000 ms, up to 2 s of
 * waiting, `onTimeout` and `onLost` `'throw'`.
 * @throws {LockConfigError} when the class is defined, if an option is wrong or the method cannot be locked.
 */
export function DistributedLock<
  M extends LockableMethod = LockableMethod,
  Key extends KeyOf<M> = KeyOf<M>,
  Path extends PathOf<M> = PathOf<M>,
  On extends OnTimeoutOf<M> = OnTimeoutOf<M>,
>(options?: DistributedLockOptions<M, Key, Path, On>): LockDecorator<M, Key, Path, On>;
export function DistributedLock(...args: unknown[]): LockDecorator {
  return decorate('mutex', args, args[0]);
}

/**
 * For a tick that every instance of an app has (`@Cron`, `@Interval`): one of them runs it, the others skip it. It is {@link DistributedLock} with
 * `waitTimeout: 0`, `onTimeout: 'skip'` and a `minHold`, which keeps the key after a quick job for an instance whose clock is behind. The log
 * says at debug level which instance ran a tick.
 *
 * A call rejects as one of {@link DistributedLock}, but not with {@link LockTimeoutError}: it resolves to `undefined`.
 *
 * @throws {LockConfigError} as {@link DistributedLock}; also without `minHold`.
 */
export function CronLock<M extends LockableMethod = LockableMethod, Key extends KeyOf<M> = KeyOf<M>, Path extends PathOf<M> = PathOf<M>>(
  options: CronLockOptions<M, Key, Path>,
): LockDecorator<M, Key, Path, 'skip'>;
export function CronLock(...args: unknown[]): LockDecorator {
  return decorate('cron', args, args[0]);
}

/**
 * Lets several readers of a key run at the same time, and excludes only each {@link WriteLock} of it; else as {@link DistributedLock}. Give both the same
 * `value`: by default each method has its own key. A reader that calls a writer of its key gets a {@link LockConfigError}.
 *
 * @throws {LockConfigError} as {@link DistributedLock}; at boot, if the key is also used as another kind of lock.
 * @throws {UnsupportedPrimitiveError} at boot, if the store has no such locks.
 */
export function ReadLock<
  M extends LockableMethod = LockableMethod,
  Key extends KeyOf<M> = KeyOf<M>,
  Path extends PathOf<M> = PathOf<M>,
  On extends OnTimeoutOf<M> = OnTimeoutOf<M>,
>(options?: ReadWriteDecoratorOptions<M, Key, Path, On>): LockDecorator<M, Key, Path, On>;
export function ReadLock(...args: unknown[]): LockDecorator {
  return decorate('read', args, args[0]);
}

/**
 * Excludes all other calls of its key, those with {@link ReadLock}, too; else as {@link DistributedLock}. A writer may call readers of its key.
 *
 * @throws as {@link ReadLock}.
 */
export const WriteLock: typeof ReadLock = (...args: unknown[]) => decorate('write', args, args[0]);

/**
 * Runs as many calls of a key at the same time as it has `permits`, over all processes; else as {@link DistributedLock}.
 *
 * @throws as {@link ReadLock}.
 */
export function Semaphore<
  M extends LockableMethod = LockableMethod,
  Key extends KeyOf<M> = KeyOf<M>,
  Path extends PathOf<M> = PathOf<M>,
  On extends OnTimeoutOf<M> = OnTimeoutOf<M>,
  Permits extends number = number,
>(options: SemaphoreDecoratorOptions<M, Key, Path, On, Permits>): LockDecorator<M, Key, Path, On>;
export function Semaphore(...args: unknown[]): LockDecorator {
  return decorate('semaphore', args, args[0]);
}

/**
 * Runs the method only on the leader of an election. On other instances a call resolves to `undefined` at once, an Observable completes, and an
 * iterable ends. An instance campaigns from its bootstrap to its shutdown, once for each name and store.
 *
 * The method runs under the lease of the term, which `currentLease()` returns. If leadership is lost while the method runs, the signal of the
 * lease aborts, and the call rejects with {@link LockLostError} if the method succeeds nevertheless.
 *
 * A call before the app's bootstrap rejects with {@link LockConfigError}.
 *
 * @param election the name; the key is `<name>-leader`.
 * @param options default: those of the module.
 * @throws {LockConfigError} when the class is defined, if an option is wrong or the method cannot wait; at boot, if methods of one election give
 * different options for it.
 */
export function LeaderOnly(election: string, options?: LeaderOnlyOptions): LockDecorator;
export function LeaderOnly(...args: unknown[]): LockDecorator {
  const [election, options] = args;
  return decorate('leader', args, options, election);
}

/**
 * Common to all decorators: checks everything that is known when the class is defined, and replaces the method by a join point.
 *
 * @param args everything that the decorator's factory was called with.
 */
function decorate(
  kind: LockKind,
  args: readonly unknown[],
  given: unknown = {},
  election?: unknown,
): <T>(target: object, method: string | symbol, descriptor: TypedPropertyDescriptor<T>) => void {
  assertParentheses(args, kind);
  return (target, method, descriptor) => {
    const { className, original, where } = targetOf(DECORATORS[kind], target, method, descriptor);
    checkDecoratorOptions(given as AnyDecoratorOptions, where, kind, EXAMPLES[kind]);
    const options: AnyDecoratorOptions = kind === 'cron' ? { ...(given as object), waitTimeout: 0, onTimeout: 'skip' } : (given as object);
    const known = lockedMethodsOf(target);
    const lower = known?.get(method);
    if (kind === 'leader' && (typeof election !== 'string' || election === '')) {
      throw configError('OPTION', `${where}: the name of the election must be a string that is not empty: write ${EXAMPLES.leader}.`);
    }
    if (options.prefix === '' && options.value === '') {
      throw configError('KEY', `${where}: the key is empty: give a "prefix" or a "value".`);
    }
    const declared = (): unknown => Reflect.getMetadata('design:returntype', target, method);
    const returns = returnKindOf(original, declared, options.returns, where, lower);
    const inner = lower?.definition;
    const definition = { kind, where, className, method, original, options, election: election as string | undefined, returns, inner };
    const joinPoint = createJoinPoint(definition);
    descriptor.value = joinPoint as typeof descriptor.value;
    recordLockedMethod(target, { definition, joinPoint });
    if (known) return;
    Inject(INTERCEPTOR)(target, INTERCEPTOR_PROPERTY);
  };
}
