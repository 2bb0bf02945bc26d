import { isObservable, Observable, type Subscription } from 'rxjs';
import { LockAbortedError, LockConfigError } from '../../core/model/errors.js';
import { adopterOf, wasAdopted } from '../boot/adoption.js';
import type { DistributedLockInterceptor } from './distributed-lock.interceptor.js';
import type { ReturnKind } from '../distributed-lock.options.js';
import { DEFINITION, INTERCEPTOR_PROPERTY } from '../distributed-lock.tokens.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import { LockedIterable } from './returns/locked-iterable.js';
import { lockedObservable, lockedPromise, type OpenCall } from './returns/locked-return.js';
import { MethodExecutionContext } from './method-context.js';

export type Method = (this: unknown, ...args: unknown[]) => unknown;
type Injected = { [INTERCEPTOR_PROPERTY]?: DistributedLockInterceptor };

const JOIN_POINTS = Symbol.for('nestjs-distributed-lock:join-points');
const shared = globalThis as { [JOIN_POINTS]?: WeakMap<object, Map<string | symbol, Method>> };

/** Join points by prototype. Not metadata, because the boot reads it for every method of the app and reflect-metadata is slow. */
const joinPoints = (shared[JOIN_POINTS] ??= new WeakMap<object, Map<string | symbol, Method>>());

const LOCKED = {
  promise: lockedPromise,
  observable: lockedObservable,
  iterable: (open: OpenCall, proceed: () => unknown, where: string) => new LockedIterable(open, proceed, where),
} as const;

/** The function that replaces a decorated method: it has the same name, length and metadata, and calls the method through the interceptor. */
export function createJoinPoint(method: Method, definition: LockDefinition): Method {
  function joinPoint(this: unknown, ...args: unknown[]): unknown {
    const target = this as object;
    const context = new MethodExecutionContext(target, joinPoint, args);
    const open: OpenCall = (handle) => flat(interceptorOf(target, definition).intercept(context, { handle }), definition);
    const proceed = (): unknown => method.apply(target, args);
    return LOCKED[definition.returns ?? returnKindNow(target, definition)](open, proceed, definition.where);
  }
  copyProperties(method, joinPoint);
  for (const key of Reflect.getOwnMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), joinPoint);
  }
  Reflect.defineMetadata(DEFINITION, definition, joinPoint);
  return joinPoint;
}

/** The lock definition of a join point; `undefined` for any other function. */
export function definitionOf(method: unknown): LockDefinition | undefined {
  return typeof method === 'function' ? (Reflect.getOwnMetadata(DEFINITION, method) as LockDefinition | undefined) : undefined;
}

/** Records the join point by its prototype, because a wrapper of another decorator above it may hide it. */
export function recordJoinPoint(prototype: object, method: string | symbol, joinPoint: Method): void {
  let recorded = joinPoints.get(prototype);
  if (!recorded) joinPoints.set(prototype, (recorded = new Map<string | symbol, Method>()));
  recorded.set(method, joinPoint);
}

/** The uppermost join point of a prototype's own method, even if another decorator has wrapped it. */
export function joinPointOf(prototype: object, method: string | symbol): Method | undefined {
  return joinPoints.get(prototype)?.get(method);
}

/** Other decorators may have set properties on the function. */
function copyProperties(from: Method, to: Method): void {
  for (const key of Reflect.ownKeys(from)) {
    if (key !== 'prototype') Object.defineProperty(to, key, Object.getOwnPropertyDescriptor(from, key) as PropertyDescriptor);
  }
}

/** An interceptor that replaces ours in a test may return a promise. */
function flat(result: Observable<unknown> | Promise<Observable<unknown>> | undefined, definition: LockDefinition): Observable<unknown> {
  if (result instanceof Observable || (isObservable(result) && !answersAnything(result))) return result;
  if (!(result instanceof Promise)) throw mocked(definition);
  return new Observable((subscriber) => {
    let inner: Subscription | undefined;
    result.then(
      (stream) => (inner = stream.subscribe(subscriber)),
      (error) => subscriber.error(error),
    );
    return () => inner?.unsubscribe();
  });
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

function interceptorOf(target: object | undefined, definition: LockDefinition): DistributedLockInterceptor {
  if (target === undefined || target === null)
    throw new LockConfigError(`${definition.where}: the method was called without its instance.`);
  const interceptor = (target as Injected)[INTERCEPTOR_PROPERTY] ?? adopterOf(target);
  if (interceptor && typeof interceptor.intercept !== 'function') throw mocked(definition);
  if (interceptor) return interceptor;
  if (wasAdopted(target))
    throw new LockAbortedError(`${definition.where}: the app that had this instance is closed.`, { reason: 'shutdown' });
  throw new LockConfigError(
    `${definition.where}: this instance was not made by Nest, or not yet given its lock, so there is none to take. ` +
      `Let Nest provide ${definition.className} (in a test: Test.createTestingModule) instead of calling \`new\`, and call the method neither in a constructor nor before the module of locks is initialized.`,
  );
}

function answersAnything(result: object): boolean {
  return (result as Record<symbol, unknown>)[Symbol('unheard of')] !== undefined;
}

/** An automatic mock either has no `intercept` method, or returns an object that has every property. */
function mocked(definition: LockDefinition): LockConfigError {
  return new LockConfigError(
    `${definition.where}: its lock was put in by an automatic mock, so there is none to take. ` +
      'Import DistributedLockModule.forRoot({ store: memoryStore() }) in the test, too.',
  );
}
