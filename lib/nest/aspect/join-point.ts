import type { CallHandler, ExecutionContext, Type } from '@nestjs/common';
import { defer, from, fromEvent, isObservable, lastValueFrom, Observable, type ObservableInput } from 'rxjs';
import { concatAll, takeUntil } from 'rxjs/operators';
import { configError, LockAbortedError, type LockConfigError } from '../../core/model/errors.js';
import type { GuardedCall } from '../../primitives/lock.js';
import { appOf } from '../boot/late-instances.js';
import type { LockDefinition, Method } from '../decorators/lock-definition.js';
import type { ReturnKind } from '../distributed-lock.options.js';
import { INTERCEPTOR_PROPERTY } from '../distributed-lock.tokens.js';
import { LockedPromise, type DistributedLockInterceptor } from './distributed-lock.interceptor.js';
import { LockedIterable } from './locked-iterable.js';

/** The function that replaces a decorated method: it has the same name, length and metadata, and calls the method through the interceptor. */
export function createJoinPoint(definition: LockDefinition): Method {
  function joinPoint(this: unknown, ...args: unknown[]): unknown {
    const target = this as object;
    const call = new MethodCall(definition, definition.returns ?? returnKindNow(target, definition), joinPoint, target, args);
    if (call.returns === 'promise') return resultOf(call);
    if (call.returns === 'observable') return defer(() => openCall(call, call));
    const method = () => call.proceed() as AsyncIterable<unknown>;
    return new LockedIterable((work, signal) => resultOf(call, { handle: () => defer(work) }, signal), method);
  }
  const { original } = definition;
  // Other decorators may have set properties on the function.
  for (const key of Reflect.ownKeys(original)) {
    if (key !== 'prototype') Object.defineProperty(joinPoint, key, Object.getOwnPropertyDescriptor(original, key) as PropertyDescriptor);
  }
  for (const key of Reflect.getOwnMetadataKeys(original) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), joinPoint);
  }
  return joinPoint;
}

/** Runs the handler under the lock. Not `async`, because that would make one more promise for each call. */
function resultOf(call: MethodCall, next: CallHandler = call, signal?: AbortSignal): Promise<unknown> {
  try {
    const opened = openCall(call, next);
    if (opened instanceof LockedPromise) return opened.run(signal);
    return lastValueFrom(signal ? opened.pipe(takeUntil(fromEvent(signal, 'abort'))) : opened, { defaultValue: undefined });
  } catch (error) {
    return Promise.reject(error);
  }
}

/** One call of a decorated method. For the interceptor it is the execution context, of type `'method'`, and the handler that runs the method. */
export class MethodCall implements ExecutionContext, CallHandler {
  constructor(
    readonly definition: LockDefinition,
    readonly returns: ReturnKind,
    private readonly joinPoint: Method,
    /** The instance that the method is called on. */
    readonly target: object,
    private readonly args: unknown[],
  ) {}

  /** @throws {LockConfigError} if the method does not return what it should. This can be known only at the call. */
  proceed(): unknown {
    const { original, where } = this.definition;
    const result = original.apply(this.target, this.args);
    if (!RESULTS[this.returns].is(result)) throw wrongResult(result, where, this.returns);
    return result;
  }

  /** Not for iterables: their items do not pass through the interceptor. */
  handle(): Observable<unknown> {
    return defer(() => this.proceed() as ObservableInput<unknown>);
  }

  /** The argument of an `onTimeout` function. */
  get forTimeout(): GuardedCall {
    const { args, target, definition } = this;
    return { args, target, method: definition.method };
  }

  getType<T extends string>(): T {
    return 'method' as T;
  }

  getClass<T>(): Type<T> {
    return this.target.constructor as Type<T>;
  }

  getHandler(): Method {
    return this.joinPoint;
  }

  getArgs<T extends unknown[]>(): T {
    return this.args as T;
  }

  getArgByIndex<T>(index: number): T {
    return this.args[index] as T;
  }

  switchToHttp(): ReturnType<ExecutionContext['switchToHttp']> {
    return { getRequest: () => this.getArgByIndex(0), getResponse: () => this.getArgByIndex(1), getNext: () => this.getArgByIndex(2) };
  }

  switchToRpc(): ReturnType<ExecutionContext['switchToRpc']> {
    return { getData: () => this.getArgByIndex(0), getContext: () => this.getArgByIndex(1) };
  }

  switchToWs(): ReturnType<ExecutionContext['switchToWs']> {
    return { getClient: () => this.getArgByIndex(0), getData: () => this.getArgByIndex(1), getPattern: () => this.getArgByIndex(2) };
  }
}

const RESULTS: Record<ReturnKind, { readonly name: string; is(value: unknown): boolean }> = {
  promise: { name: 'a Promise', is: (value) => typeof (Object(value) as { then?: unknown }).then === 'function' },
  observable: { name: 'an Observable', is: isObservable },
  iterable: { name: 'an async iterable', is: (value) => Symbol.asyncIterator in (Object(value) as object) },
};

function wrongResult(result: unknown, where: string, expected: ReturnKind): LockConfigError {
  const actual = (['observable', 'iterable'] as const).find((kind) => RESULTS[kind].is(result));
  return configError(
    'METHOD',
    actual
      ? `${where}: the method has run, and returned ${RESULTS[actual].name}: say so with returns: '${actual}'.`
      : `${where}: the method has run, and did not return ${RESULTS[expected].name}, so its lock could not be held until it ended.`,
  );
}

/**
 * Gives the call to the interceptor of its app.
 *
 * @throws {LockConfigError} if the instance has no interceptor, or an automatic mock.
 * @throws {LockAbortedError} if the app of the instance is closed.
 */
function openCall(call: MethodCall, next: CallHandler): Observable<unknown> {
  const { target, definition } = call;
  const result: unknown = interceptorOf(target, definition).intercept(call, next);
  if (result instanceof Observable || (isObservable(result) && !answersAnything(result))) return result;
  // The interface lets an interceptor that replaces ours in a test return a promise.
  if (result instanceof Promise) return from(result as Promise<Observable<unknown>>).pipe(concatAll());
  throw mocked(definition);
}

/** Used if neither the function nor its declared type says what the method returns: the app's defaults may. Without an interceptor the call fails later. */
function returnKindNow(target: object, definition: LockDefinition): ReturnKind {
  try {
    const kind: unknown = interceptorOf(target, definition).returnKindOf?.(definition);
    return kind === 'observable' || kind === 'iterable' ? kind : 'promise';
  } catch {
    return 'promise';
  }
}

function interceptorOf(target: object | undefined | null, definition: LockDefinition): DistributedLockInterceptor {
  const { where, className } = definition;
  if (target === undefined || target === null) throw configError('INSTANCE', `${where}: the method was called without its instance.`);
  const injected = (target as { [INTERCEPTOR_PROPERTY]?: DistributedLockInterceptor })[INTERCEPTOR_PROPERTY];
  const app = injected ? undefined : appOf(target);
  const interceptor = injected ?? app?.interceptor;
  if (interceptor && typeof interceptor.intercept !== 'function') throw mocked(definition);
  if (interceptor) return interceptor;
  if (app) throw new LockAbortedError(`${where}: the app that had this instance is closed.`, { reason: 'shutdown' });
  throw configError(
    'INSTANCE',
    `${where}: this instance was not made by Nest, or Nest has not finished it, so it has no lock. ` +
      `Let Nest provide ${className} (in a test: Test.createTestingModule) instead of calling \`new\`, and call the method neither in a constructor nor before the module of locks is initialized. ` +
      'A proxy that a factory makes must not bind methods to its target, which Nest does not know.',
  );
}

function answersAnything(result: object): boolean {
  return (result as Record<symbol, unknown>)[Symbol('no interceptor knows this')] !== undefined;
}

/** An automatic mock either has no `intercept` method, or returns an object that has every property. */
function mocked({ where }: LockDefinition): LockConfigError {
  return configError(
    'INSTANCE',
    `${where}: its lock was put in by an automatic mock, so it has no lock. ` +
      'Import DistributedLockModule.forRoot({ store: memoryStore() }) in the test, too.',
  );
}
