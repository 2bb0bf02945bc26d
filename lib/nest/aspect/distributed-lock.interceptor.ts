import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { isObservable, Observable, Subject, type Subscriber } from 'rxjs';
import { takeUntil } from 'rxjs/operators';
import type { Lease } from '../../core/holding/lease.js';
import { lossOf, releaseOf, resultOnTimeout } from '../../primitives/lease-lock.js';
import { DEFINITION } from '../distributed-lock.tokens.js';
import type { ReturnKind } from '../distributed-lock.options.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import type { LockPlan } from './lock-plan.js';
import { LockRegistry } from '../lock-registry.js';
import type { MethodExecutionContext } from './method-context.js';
import type { MethodLock } from './method-lock.js';

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
    const call = context as MethodExecutionContext;
    const definition = Reflect.getMetadata(DEFINITION, call.getHandler()) as LockDefinition;
    return new Observable((subscriber) => {
      const guarded = new GuardedCall(this.registry.planOf(definition), definition, call, subscriber);
      void guarded.run(next);
      return () => guarded.cancel();
    });
  }

  /** The return kind of a method for which neither the function nor its declared type says it. */
  returnKindOf(definition: LockDefinition): ReturnKind {
    return this.registry.planOf(definition).returns;
  }
}

/** One subscription. It holds the lock from its start until it completes, fails or is unsubscribed. */
class GuardedCall {
  private readonly abort: AbortController | undefined;
  private left: Subject<void> | undefined;
  private lease: Lease | undefined;
  private last: unknown;
  private isOver = false;

  constructor(
    private readonly plan: LockPlan,
    private readonly definition: LockDefinition,
    private readonly call: MethodExecutionContext,
    private readonly subscriber: Subscriber<unknown>,
  ) {
    // A promise cannot be unsubscribed from.
    if (plan.returns !== 'promise') this.abort = new AbortController();
  }

  async run(next: CallHandler): Promise<void> {
    const { plan, subscriber } = this;
    let lock: MethodLock;
    let lease: Lease;
    try {
      lock = plan.lockOf(this.call.getArgs());
      lease = await lock.take({ ...plan.options, signal: this.abort?.signal }, true);
    } catch (error) {
      return this.giveUp(error);
    }
    this.lease = lease;
    if (this.isOver) return void lease.release();
    try {
      lock.holding(lease, () =>
        this.untilLeft(next.handle()).subscribe({
          next: (value: unknown) => {
            this.last = value;
            subscriber.next(value);
          },
          error: (error: unknown) => void this.fail(lease, error),
          complete: () => {
            if (!this.isOver) void this.complete(lease);
          },
        }),
      );
    } catch (error) {
      await this.fail(lease, error);
    }
  }

  cancel(): void {
    this.isOver = true;
    this.abort?.abort();
    this.left?.next();
    void this.lease?.release();
  }

  /** A source may emit synchronously, and the subscriber unsubscribe, before `subscribe` has returned the subscription. */
  private untilLeft(source: Observable<unknown>): Observable<unknown> {
    if (!this.abort) return source;
    this.left = new Subject();
    return source.pipe(takeUntil(this.left));
  }

  private async giveUp(error: unknown): Promise<void> {
    const { subscriber, plan, call, definition } = this;
    try {
      const result = await resultOnTimeout(error, plan.options, { args: call.getArgs(), target: call.target, method: definition.method });
      if (plan.returns === 'observable' && isObservable(result)) {
        result.subscribe(subscriber);
        return;
      }
      if (result !== undefined) subscriber.next(result);
      subscriber.complete();
    } catch (failure) {
      subscriber.error(failure);
    }
  }

  private async fail(lease: Lease, error: unknown): Promise<void> {
    await releaseOf(lease, this.plan.options);
    this.subscriber.error(error);
  }

  private async complete(lease: Lease): Promise<void> {
    const loss = lossOf(lease, await releaseOf(lease, this.plan.options), this.last);
    if (loss) this.subscriber.error(loss);
    else this.subscriber.complete();
  }
}
