import type { LockStore } from '../../core/store/lock-store.js';
import { MemoryCountDownLatchDriver } from './count-down-latch.driver.js';
import { MemoryTokens } from './memory.tokens.js';
import { MemoryWakeUps } from './memory.wakeups.js';
import { MemoryMutexDriver } from './mutex.driver.js';
import { SharedKeys } from './shared-keys.js';
import { MemorySharingDriver } from './sharing.driver.js';

/**
 * A store in the memory of this process, for tests and for apps that run as one process. Expiry, fencing tokens and waiting are as on Redis;
 * what another process holds it cannot know.
 */
export function memoryStore(): LockStore {
  const wakeUps = new MemoryWakeUps();
  const tokens = new MemoryTokens();
  const mutex = new MemoryMutexDriver(wakeUps, tokens, (key) => shared.kindOf(key) ?? latches.kindOf(key));
  const shared: SharedKeys = new SharedKeys(tokens, (key) => (mutex.isInUse(key) ? 'mutex' : latches.kindOf(key)));
  const latches: MemoryCountDownLatchDriver = new MemoryCountDownLatchDriver(wakeUps, (key) =>
    mutex.isInUse(key) ? 'mutex' : shared.kindOf(key),
  );
  return {
    name: 'memory',
    requestTimeout: 1000,
    mutex,
    // Two drivers, by which the engine tells a read lease from a write lease.
    readWriteLock: {
      read: new MemorySharingDriver(shared, 'read/write lock', wakeUps),
      write: new MemorySharingDriver(shared, 'read/write lock', wakeUps),
    },
    semaphore: new MemorySharingDriver(shared, 'semaphore', wakeUps),
    countDownLatch: latches,
    // A minHold outlasts the app that asked for it.
    close: () => Promise.resolve(),
  };
}
