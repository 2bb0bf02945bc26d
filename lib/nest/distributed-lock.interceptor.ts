import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { isObservable, Observable, Subject, type Subscriber } from 'rxjs';
import { takeUntil } from 'rxjs/operators';
import type { Lease } from '../core/lease.js';
import { lossOf, resultOnTimeout } from '../primitives/lease-lock.js';
import { DEFINITION } from './distributed-lock.tokens.js';
import type { ReturnKind } from './distributed-lock.options.js';
import type { LockDefinition } from './lock-definition.js';
import type { LockPlan } from './lock-plan.js';
import { LockRegistry } from './lock-registry.js';
import type { MethodExecutionContext } from './method-context.js';
import type { MethodLock } from './method-lock.js';

/**
 * The aspect: builds the key, takes the lock, proceeds, gives the lock back. The join point that {@link DistributedLock} leaves in a method's
 * place calls it with a context of type `'method'`. Elsewhere, bound to a controller for instance, it lets calls pass: a decorated handler
 * locks by its own join point, and must not lock twice.
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

  /** What a method returns of which neither its kind nor its declared type tells. */
  returnKindOf(definition: LockDefinition): ReturnKind {
    return this.registry.planOf(definition).returns;
  }
}

/** One subscription: from its start to its completion, error or unsubscription it holds the lock. */
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
    // Nobody unsubscribes from a promise.
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

  /** A source may emit, and its subscriber leave, before `subscribe` has returned a subscription to end. */
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
    await lease.release();
    this.subscriber.error(error);
  }

  private async complete(lease: Lease): Promise<void> {
    const loss = lossOf(lease, await lease.release(), this.plan.options, this.last);
    if (loss) this.subscriber.error(loss);
    else this.subscriber.complete();
  }
}
