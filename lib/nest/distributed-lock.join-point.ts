import { isObservable, Observable, type Subscription } from 'rxjs';
import { LockAbortedError, LockConfigError } from '../core/errors.js';
import { adopterOf, wasAdopted } from './adoption.js';
import type { DistributedLockInterceptor } from './distributed-lock.interceptor.js';
import type { ReturnKind } from './distributed-lock.options.js';
import { DEFINITION, INTERCEPTOR_PROPERTY } from './distributed-lock.tokens.js';
import type { LockDefinition } from './lock-definition.js';
import { LockedIterable } from './locked-iterable.js';
import { lockedObservable, lockedPromise, type OpenCall } from './locked-return.js';
import { MethodExecutionContext } from './method-context.js';

export type Method = (this: unknown, ...args: unknown[]) => unknown;
type Injected = { [INTERCEPTOR_PROPERTY]?: DistributedLockInterceptor };

const JOIN_POINTS = Symbol.for('nestjs-distributed-lock:join-points');
const shared = globalThis as { [JOIN_POINTS]?: WeakMap<object, Map<string | symbol, Method>> };

/** By prototype. Not metadata: at boot it is asked for every method of the app, and reflect-metadata is slow. */
const joinPoints = (shared[JOIN_POINTS] ??= new WeakMap<object, Map<string | symbol, Method>>());

const LOCKED = {
  promise: lockedPromise,
  observable: lockedObservable,
  iterable: (open: OpenCall, proceed: () => unknown, where: string) => new LockedIterable(open, proceed, where),
} as const;

/** What a decorator leaves in its method's place: name, length and metadata stay, and the call goes through the interceptor. */
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

/** The lock that the function is a join point of. */
export function definitionOf(method: unknown): LockDefinition | undefined {
  return typeof method === 'function' ? (Reflect.getOwnMetadata(DEFINITION, method) as LockDefinition | undefined) : undefined;
}

/** Remembers it by its prototype: what another decorator puts above it may not show that there is a lock below. */
export function recordJoinPoint(prototype: object, method: string | symbol, joinPoint: Method): void {
  let recorded = joinPoints.get(prototype);
  if (!recorded) joinPoints.set(prototype, (recorded = new Map<string | symbol, Method>()));
  recorded.set(method, joinPoint);
}

/** The uppermost join point of a prototype's own method, though another decorator may have wrapped it. */
export function joinPointOf(prototype: object, method: string | symbol): Method | undefined {
  return joinPoints.get(prototype)?.get(method);
}

/** Other decorators leave marks on the function too. */
function copyProperties(from: Method, to: Method): void {
  for (const key of Reflect.ownKeys(from)) {
    if (key !== 'prototype') Object.defineProperty(to, key, Object.getOwnPropertyDescriptor(from, key) as PropertyDescriptor);
  }
}

/** An interceptor that a test puts in the place of ours may answer with a promise. */
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

/** Where neither the function nor its declared type tells, the app's defaults may; an instance without an interceptor fails soon enough. */
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

/** An automatic mocker has nothing to call, or answers whatever it is asked. */
function mocked(definition: LockDefinition): LockConfigError {
  return new LockConfigError(
    `${definition.where}: its lock was put in by an automatic mock, so there is none to take. ` +
      'Import DistributedLockModule.forRoot({ store: memoryStore() }) in the test, too.',
  );
}
