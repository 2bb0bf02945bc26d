import type { LockStore } from '../../core/store/lock-store.js';
import { MemoryCountDownLatchDriver } from './count-down-latch.driver.js';
import { MemoryLeaseDriver } from './lease.driver.js';
import type { LockKind } from './lock-record.js';
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
  return {
    name: 'memory',
    requestTimeout: 1000,
    mutex: driverOf('mutex'),
    // Two drivers, because the engine tells a read lease from a write lease by its driver.
    readWriteLock: { read: driverOf('read/write lock'), write: driverOf('read/write lock') },
    semaphore: driverOf('semaphore'),
    countDownLatch: new MemoryCountDownLatchDriver(records, wakeUps),
    // A minHold outlasts the app that asked for it.
    close: () => Promise.resolve(),
  };
}
