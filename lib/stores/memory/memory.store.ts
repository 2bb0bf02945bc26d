import type { LockStore } from '../../core/store.js';
import { MemoryMutexDriver } from './mutex.driver.js';

/**
 * A store in the memory of this process, for tests and for apps that run as one process. Expiry, fencing tokens and waiting are as on Redis;
 * what another process holds it cannot know.
 */
export function memoryStore(): LockStore {
  return {
    name: 'memory',
    requestTimeout: 1000,
    mutex: new MemoryMutexDriver(),
    // A minHold outlasts the app that asked for it.
    close: () => Promise.resolve(),
  };
}
