import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from '../../core/store/lease-driver.js';
import type { LeaseSteps } from './lease.steps.js';
import type { RecordQueue } from './record.queue.js';
import type { RecordWakeUps } from './record.table.js';
import { QUEUE_LIFE } from './record.work.js';

/** One kind of lock on records. */
export class RecordLeaseDriver implements LeaseDriver {
  readonly queueEntryLifetime = QUEUE_LIFE;
  readonly isShared: boolean;

  constructor(
    private readonly recordQueue: RecordQueue,
    private readonly steps: LeaseSteps,
    readonly wakeUps?: RecordWakeUps,
  ) {
    this.isShared = steps.kind !== 'mutex';
  }

  /** Tokens are microseconds, unless the clock was set back. */
  timeOf(token: number): Date {
    return new Date(token / 1000);
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const inbox = this.wakeUps?.isOpen ? this.wakeUps.inbox : '';
    return this.recordQueue.ask(request.key, (work) => this.steps.acquire(work, request, inbox), this.steps.needsFence);
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return batch.map((request) => this.recordQueue.ask(request.key, (work) => this.steps.renew(work, request)));
  }

  extend(request: ExtendRequest): Promise<ExtendReply> {
    return this.recordQueue.ask(request.key, (work) => this.steps.extend(work, request), this.steps.needsFence);
  }

  release(request: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.recordQueue.ask(request.key, (work) => this.steps.release(work, request));
  }

  leave(tenancy: Tenancy): Promise<void> {
    return this.recordQueue.ask(tenancy.key, (work) => this.steps.leave(work, tenancy));
  }

  check(tenancy: Tenancy): Promise<CheckReply> {
    return this.recordQueue.ask(tenancy.key, (work) => this.steps.check(work, tenancy));
  }
}
