import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { from, lastValueFrom, Observable } from 'rxjs';
import { runUnder } from '../../primitives/lock.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import type { ReturnKind } from '../distributed-lock.options.js';
import { LockRegistry } from '../lock-registry.js';
import type { MethodCall } from './join-point.js';
import { lockedObservable } from './locked-observable.js';

/**
 * The aspect: builds the key, acquires the lock, calls the method, releases the lock. It is called by the join point that
 * {@link DistributedLock} puts in place of a method, with a context of type `'method'`. Bound to a controller it does nothing: a decorated
 * handler already locks by its join point, and must not lock twice.
 */
@Injectable()
export class DistributedLockInterceptor implements NestInterceptor {
  constructor(@Inject(LockRegistry) private readonly registry: LockRegistry) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType<string>() !== 'method') return next.handle();
    const call = context as MethodCall;
    const plan = this.registry.planOf(call.definition);
    const runLocked = (work: () => unknown, signal?: AbortSignal): Promise<unknown> =>
      runUnder(plan.lockOf(call.getArgs()), signal ? { ...plan.options, signal } : plan.options, work, call.forTimeout);
    if (call.returns === 'observable') return lockedObservable(runLocked, next);
    // An interceptor that wraps this one may pass another handler.
    const work = () => (next === call ? call.proceed() : lastValueFrom(next.handle(), { defaultValue: undefined }));
    return new LockedPromise((signal) => runLocked(work, signal));
  }

  /** The return kind of a method for which neither the function nor its declared type says it. */
  returnKindOf(definition: LockDefinition): ReturnKind {
    return this.registry.planOf(definition).returns;
  }
}

/** A locked call that ends with a promise. The join point runs it without a subscription: that makes fewer objects for each call. */
export class LockedPromise extends Observable<unknown> {
  /** @param run its signal ends the wait for the lock. */
  constructor(readonly run: (signal?: AbortSignal) => Promise<unknown>) {
    super((subscriber) => {
      const abort = new AbortController();
      from(run(abort.signal)).subscribe(subscriber);
      return () => abort.abort();
    });
  }
}
