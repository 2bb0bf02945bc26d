import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { from, lastValueFrom, Observable } from 'rxjs';
import { runUnder } from '../../primitives/lease-lock.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import type { ReturnKind } from '../distributed-lock.options.js';
import { LockRegistry } from '../lock-registry.js';
import { LockedSubscription } from './locked-subscription.js';
import type { MethodCall } from './method-call.js';

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
    if (call.returns !== 'promise') {
      return new Observable((subscriber) => {
        const subscription = new LockedSubscription(plan, call, subscriber);
        void subscription.run(next);
        return () => subscription.cancel();
      });
    }
    // An interceptor that wraps this one may pass another handler.
    const work = () => (next === call ? call.proceed() : lastValueFrom(next.handle(), { defaultValue: undefined }));
    return new LockedPromise(() => runUnder(plan.lockOf(call.getArgs()), plan.options, work, call.forTimeout));
  }

  /** The return kind of a method for which neither the function nor its declared type says it. */
  returnKindOf(definition: LockDefinition): ReturnKind {
    return this.registry.planOf(definition).returns;
  }
}

/** The locked call of a method that returns a promise. The join point runs it without a subscription, which would cost more than the lock. */
export class LockedPromise extends Observable<unknown> {
  constructor(readonly run: () => Promise<unknown>) {
    super((subscriber) => from(run()).subscribe(subscriber));
  }
}
