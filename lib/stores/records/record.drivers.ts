import type { LatchDriver } from '../../core/store/latch-driver.js';
import type { LeaseDriver } from '../../core/store/lease-driver.js';
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
  const driver = (steps: LeaseSteps): LeaseDriver => leaseDriver(recordQueue, steps, wakeUps);
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
function leaseDriver(recordQueue: RecordQueue, steps: LeaseSteps, wakeUps?: RecordWakeUps): LeaseDriver {
  const { kind, needsFence } = steps;
  return {
    queueEntryLifetime: QUEUE_LIFE,
    isShared: kind !== 'mutex',
    wakeUps,
    // Tokens are microseconds, unless the clock was set back.
    timeOf: (token) => new Date(token / 1000),
    acquire(request) {
      const inbox = wakeUps?.isOpen ? wakeUps.inbox : '';
      return recordQueue.ask(request.key, (work) => steps.acquire(work, request, inbox), needsFence);
    },
    renew: (batch) => batch.map((request) => recordQueue.ask(request.key, (work) => steps.renew(work, request))),
    extend: (request) => recordQueue.ask(request.key, (work) => steps.extend(work, request), needsFence),
    adopt: (request) => recordQueue.ask(request.key, (work) => steps.adopt(work, request)),
    release: (request) => recordQueue.ask(request.key, (work) => steps.release(work, request)),
    leave: (tenancy) => recordQueue.ask(tenancy.key, (work) => steps.leave(work, tenancy)),
    check: (tenancy) => recordQueue.ask(tenancy.key, (work) => steps.check(work, tenancy)),
  };
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
