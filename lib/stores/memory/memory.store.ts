import type { LockStore } from '../../core/store/lock-store.js';
import { MemoryCountDownLatchDriver } from './count-down-latch.driver.js';
import { MemoryLeaseDriver } from './lease.driver.js';
import type { LockKind } from './lock-record.js';
import { MemoryBus } from './memory.bus.js';
import { MemoryInspector } from './memory.inspector.js';
import { MemoryRecords } from './memory.records.js';
import { MemoryTokens } from './memory.tokens.js';
import { MemoryWakeUps } from './memory.wakeups.js';

/**
 * A store in the memory of this process, for tests and for apps that run as one process. Expiry, fencing tokens and waiting are as on Redis;
 * what another process holds it cannot know.
 */
export function memoryStore(): LockStore {
  const records = new MemoryRecords();
  const tokens = new MemoryTokens();
  const wakeUps = new MemoryWakeUps();
  const driverOf = (kind: LockKind) => new MemoryLeaseDriver(kind, records, tokens, wakeUps);
  const mutex = driverOf('mutex');
  const read = driverOf('read/write lock');
  const semaphore = driverOf('semaphore');
  return {
    name: 'memory',
    requestTimeout: 1000,
    mutex,
    // Two drivers, because the engine tells a read lease from a write lease by its driver.
    readWriteLock: { read, write: driverOf('read/write lock') },
    semaphore,
    countDownLatch: new MemoryCountDownLatchDriver(records, wakeUps),
    inspector: new MemoryInspector(records, { mutex, 'read/write lock': read, semaphore }),
    bus: new MemoryBus(),
    // A minHold outlasts the app that asked for it.
    close: () => Promise.resolve(),
  };
}
