import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import { latchSteps } from './latch.steps.js';
import type { RecordQueue } from './record.queue.js';
import type { RecordWakeUps } from './record.table.js';

/** Count-down latches on records. */
export class RecordLatchDriver implements LatchDriver {
  constructor(
    private readonly recordQueue: RecordQueue,
    readonly wakeUps?: RecordWakeUps,
  ) {}

  trySetCount(change: LatchChange & { readonly count: number }): Promise<boolean> {
    return this.recordQueue.ask(change.key, (work) => latchSteps.trySetCount(work, change));
  }

  countDown(change: LatchChange): Promise<number> {
    return this.recordQueue.ask(change.key, (work) => latchSteps.countDown(work, change));
  }

  look(look: LatchLook): Promise<LatchState | undefined> {
    return this.recordQueue.ask(look.key, (work) => latchSteps.look(work, look, this.wakeUps?.inbox ?? ''));
  }

  leave(tenancy: Tenancy): Promise<void> {
    return this.recordQueue.ask(tenancy.key, (work) => latchSteps.leave(work, tenancy));
  }
}
