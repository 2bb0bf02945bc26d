import type { LatchDriver } from '../../core/store/latch-driver.js';
import type {
  AcquireReply,
  AcquireRequest,
  AdoptReply,
  AdoptRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { latchSteps } from './latch.steps.js';
import { LeaseSteps } from './lease.steps.js';
import { RecordInspector } from './operate/record.inspector.js';
import type { RecordQueue } from './record.queue.js';
import type { RecordTable, RecordWakeUps } from './record.table.js';
import { QUEUE_LIFE } from './record.work.js';

type Drivers = Required<Pick<LockStore, 'mutex' | 'readWriteLock' | 'semaphore' | 'countDownLatch' | 'inspector'>>;

/** Makes the drivers of all kinds of locks over one record queue. */
export function recordDrivers(recordQueue: RecordQueue, table: Pick<RecordTable, 'wakeUps' | 'keys' | 'note'>): Drivers {
  const { wakeUps } = table;
  const driver = (steps: LeaseSteps): LeaseDriver => new RecordLeaseDriver(recordQueue, steps, wakeUps);
  return {
    mutex: driver(new LeaseSteps('mutex')),
    readWriteLock: {
      read: driver(new LeaseSteps('read/write lock', 'read')),
      write: driver(new LeaseSteps('read/write lock', 'write')),
    },
    semaphore: driver(new LeaseSteps('semaphore')),
    countDownLatch: latchDriver(recordQueue, wakeUps),
    inspector: new RecordInspector(recordQueue, table),
  };
}

/** One kind of lock on records. */
class RecordLeaseDriver implements LeaseDriver {
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

  adopt(request: AdoptRequest): Promise<AdoptReply> {
    return this.recordQueue.ask(request.key, (work) => this.steps.adopt(work, request));
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

function latchDriver(recordQueue: RecordQueue, wakeUps?: RecordWakeUps): LatchDriver {
  return {
    wakeUps,
    trySetCount: (change) => recordQueue.ask(change.key, (work) => latchSteps.trySetCount(work, change)),
    countDown: (change) => recordQueue.ask(change.key, (work) => latchSteps.countDown(work, change)),
    look: (look) => recordQueue.ask(look.key, (work) => latchSteps.look(work, look, wakeUps?.inbox ?? '')),
    leave: (tenancy) => recordQueue.ask(tenancy.key, (work) => latchSteps.leave(work, tenancy)),
  };
}
