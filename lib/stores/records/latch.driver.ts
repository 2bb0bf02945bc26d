import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import { latchSteps } from './latch.steps.js';
import type { Desk } from './record.desk.js';
import type { RecordWakeUps } from './record.table.js';

/** Count-down latches on records. */
export class RecordLatchDriver implements LatchDriver {
  constructor(
    private readonly desk: Desk,
    readonly wakeUps?: RecordWakeUps,
  ) {}

  trySetCount(change: LatchChange & { readonly count: number }): Promise<boolean> {
    return this.desk.ask(change.key, (work) => latchSteps.trySetCount(work, change));
  }

  countDown(change: LatchChange): Promise<number> {
    return this.desk.ask(change.key, (work) => latchSteps.countDown(work, change));
  }

  look(look: LatchLook): Promise<LatchState | undefined> {
    return this.desk.ask(look.key, (work) => latchSteps.look(work, look, this.wakeUps?.inbox ?? ''));
  }

  leave(tenancy: Tenancy): Promise<void> {
    return this.desk.ask(tenancy.key, (work) => latchSteps.leave(work, tenancy));
  }
}
