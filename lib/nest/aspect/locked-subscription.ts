import type { CallHandler } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import { isObservable, Subject, takeUntil, type Subscriber } from 'rxjs';
import type { Lease } from '../../core/holding/lease.js';
import { lossOf, releaseOf, resultOnTimeout } from '../../primitives/lease-lock.js';
import type { LockPlan, MethodLock } from './lock-plan.js';
import type { MethodCall } from './method-call.js';

/** One subscription to a locked Observable. It holds the lock from its start until it completes, fails or is unsubscribed. */
export class LockedSubscription {
  private readonly abort = new AbortController();
  /** Ends a source that emits synchronously, while `subscribe` has not yet returned the subscription. */
  private readonly left = new Subject<void>();
  /** The subscriber's code runs outside of the call chain. */
  private readonly outside = AsyncLocalStorage.snapshot();
  private lease: Lease | undefined;
  private last: unknown;

  constructor(
    private readonly plan: LockPlan,
    private readonly call: MethodCall,
    private readonly subscriber: Subscriber<unknown>,
  ) {}

  async run(next: CallHandler): Promise<void> {
    const { plan, subscriber } = this;
    const { signal } = this.abort;
    let lock: MethodLock;
    let lease: Lease;
    try {
      lock = plan.lockOf(this.call.getArgs());
      lease = await lock.take({ ...plan.options, signal }, true);
    } catch (error) {
      return this.giveUp(error);
    }
    this.lease = lease;
    if (signal.aborted) return void lease.release();
    try {
      lock.holding(lease, () =>
        next
          .handle()
          .pipe(takeUntil(this.left))
          .subscribe({
            next: (value) => {
              this.last = value;
              this.outside(() => subscriber.next(value));
            },
            error: (error) => void this.fail(lease, error),
            complete: () => {
              if (!signal.aborted) void this.complete(lease);
            },
          }),
      );
    } catch (error) {
      await this.fail(lease, error);
    }
  }

  cancel(): void {
    this.abort.abort();
    this.left.next();
    void this.lease?.release();
  }

  private async giveUp(error: unknown): Promise<void> {
    const { subscriber, plan, call } = this;
    try {
      const result = await resultOnTimeout(error, plan.options, call.forTimeout);
      if (call.returns === 'observable' && isObservable(result)) {
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
    this.outside(() => this.subscriber.error(error));
  }

  private async complete(lease: Lease): Promise<void> {
    const loss = lossOf(lease, await releaseOf(lease, this.plan.options), this.last);
    this.outside(() => (loss ? this.subscriber.error(loss) : this.subscriber.complete()));
  }
}
