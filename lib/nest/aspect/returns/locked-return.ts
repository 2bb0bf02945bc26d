import { AsyncLocalStorage } from 'node:async_hooks';
import { isObservable, Observable } from 'rxjs';
import { LockConfigError } from '../../../core/model/errors.js';

/** Returns an Observable that runs the call under its lock when it is subscribed to. `handle` calls the method, and returns its result as an Observable. */
export type OpenCall = (handle: () => Observable<unknown>) => Observable<unknown>;

/** Runs a locked call at once, and returns its promise. */
export function lockedPromise(open: OpenCall, proceed: () => unknown, where: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let last: unknown;
    open(() => settlementOf(proceed, where)).subscribe({
      next: (value) => (last = value),
      error: reject,
      complete: () => resolve(last),
    });
  });
}

/** An Observable that calls the method under its lock for each subscription. The code of its subscribers runs outside of the call chain. */
export function lockedObservable(open: OpenCall, proceed: () => unknown, where: string): Observable<unknown> {
  return new Observable((subscriber) => {
    const outside = AsyncLocalStorage.snapshot();
    return open(() => streamOf(proceed(), where)).subscribe({
      next: (value) => outside(() => subscriber.next(value)),
      error: (error) => outside(() => subscriber.error(error)),
      complete: () => outside(() => subscriber.complete()),
    });
  });
}

function settlementOf(proceed: () => unknown, where: string): Observable<unknown> {
  return new Observable((subscriber) => {
    const result = proceed();
    if (!isThenable(result)) throw wrongReturn(result, where, 'promise');
    result.then(
      (value) => {
        subscriber.next(value);
        subscriber.complete();
      },
      (error) => subscriber.error(error),
    );
  });
}

function streamOf(result: unknown, where: string): Observable<unknown> {
  if (!isObservable(result)) throw wrongReturn(result, where, 'observable');
  return result;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** The error for a method that returned another kind than expected. This can be known only at the call. */
export function wrongReturn(result: unknown, where: string, expected: 'promise' | 'observable' | 'iterable'): LockConfigError {
  const names = { promise: 'a Promise', observable: 'an Observable', iterable: 'an async iterable' };
  if (isObservable(result)) return new LockConfigError(`${where}: the method returned an Observable: say so with returns: 'observable'.`);
  if (typeof result === 'object' && result !== null && Symbol.asyncIterator in result) {
    return new LockConfigError(`${where}: the method returned an async iterable: say so with returns: 'iterable'.`);
  }
  return new LockConfigError(`${where}: the method did not return ${names[expected]}, so its lock could not be held until it ended.`);
}
