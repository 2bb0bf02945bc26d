import type { CallHandler } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import { fromEvent, isObservable, Observable } from 'rxjs';
// RxJS 7.1 has operators only here.
import { takeUntil } from 'rxjs/operators';
import type { RunLocked } from './locked-iterable.js';

/** An Observable that holds the lock from each subscription until it completes, fails or is unsubscribed. */
export function lockedObservable(runLocked: RunLocked, next: CallHandler): Observable<unknown> {
  return new Observable((subscriber) => {
    const abort = new AbortController();
    const { signal } = abort;
    // The code of the subscriber runs outside of the call chain.
    const outside = AsyncLocalStorage.snapshot();
    let hasBegun = false;
    const work = () =>
      new Promise((resolve, reject) => {
        hasBegun = true;
        let last: unknown;
        if (signal.aborted) return resolve(undefined);
        // Not by the subscription: a source that emits while it is subscribed to, and its subscriber leaves, has none yet.
        const source = next.handle().pipe(takeUntil(fromEvent(signal, 'abort')));
        source.subscribe({
          next: (value) => {
            last = value;
            outside(() => subscriber.next(value));
          },
          error: reject,
          complete: () => resolve(last),
        });
      });
    runLocked(work, signal).then(
      (result) => {
        // Without the lock, it is the result of `onTimeout`.
        if (!hasBegun && isObservable(result)) return result.subscribe(subscriber);
        if (!hasBegun && result !== undefined) subscriber.next(result);
        subscriber.complete();
      },
      (error) => subscriber.error(error),
    );
    return () => abort.abort();
  });
}
