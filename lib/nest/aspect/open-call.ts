import type { CallHandler } from '@nestjs/common';
import { from, isObservable, Observable } from 'rxjs';
import { concatAll } from 'rxjs/operators';
import { LockAbortedError, LockConfigError } from '../../core/model/errors.js';
import { adopterOf, wasAdopted } from '../boot/late-instances.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import type { ReturnKind } from '../distributed-lock.options.js';
import { INTERCEPTOR_PROPERTY } from '../distributed-lock.tokens.js';
import type { DistributedLockInterceptor } from './distributed-lock.interceptor.js';
import type { MethodCall } from './method-call.js';

/**
 * Gives the call to the interceptor of its app.
 *
 * @throws {LockConfigError} if the instance has no interceptor, or a mock that is none.
 * @throws {LockAbortedError} if the app of the instance is closed.
 */
export function openCall(call: MethodCall, next: CallHandler): Observable<unknown> {
  const { target, definition } = call;
  const result = interceptorOf(target, definition).intercept(call, next) as Observable<unknown> | Promise<Observable<unknown>> | undefined;
  if (result instanceof Observable || (isObservable(result) && !answersAnything(result))) return result;
  // The interface lets an interceptor that replaces ours in a test return a promise.
  if (result instanceof Promise) return from(result).pipe(concatAll());
  throw mocked(definition);
}

/** Used if neither the function nor its declared type says what the method returns: the app's defaults may. Without an interceptor the call fails later. */
export function returnKindNow(target: object, definition: LockDefinition): ReturnKind {
  try {
    const kind: unknown = interceptorOf(target, definition).returnKindOf?.(definition);
    return kind === 'observable' || kind === 'iterable' ? kind : 'promise';
  } catch {
    return 'promise';
  }
}

function interceptorOf(target: object | undefined | null, definition: LockDefinition): DistributedLockInterceptor {
  const { where, className } = definition;
  if (target === undefined || target === null) throw new LockConfigError(`${where}: the method was called without its instance.`);
  const interceptor = (target as { [INTERCEPTOR_PROPERTY]?: DistributedLockInterceptor })[INTERCEPTOR_PROPERTY] ?? adopterOf(target);
  if (interceptor && typeof interceptor.intercept !== 'function') throw mocked(definition);
  if (interceptor) return interceptor;
  if (wasAdopted(target)) throw new LockAbortedError(`${where}: the app that had this instance is closed.`, { reason: 'shutdown' });
  throw new LockConfigError(
    `${where}: this instance was not made by Nest, or not yet given its lock, so there is none to take. ` +
      `Let Nest provide ${className} (in a test: Test.createTestingModule) instead of calling \`new\`, and call the method neither in a constructor nor before the module of locks is initialized.`,
  );
}

function answersAnything(result: object): boolean {
  return (result as Record<symbol, unknown>)[Symbol('no interceptor knows this')] !== undefined;
}

/** An automatic mock either has no `intercept` method, or returns an object that has every property. */
function mocked({ where }: LockDefinition): LockConfigError {
  return new LockConfigError(
    `${where}: its lock was put in by an automatic mock, so there is none to take. ` +
      'Import DistributedLockModule.forRoot({ store: memoryStore() }) in the test, too.',
  );
}
