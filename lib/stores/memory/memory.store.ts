import { supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { checksOf, warning, type Finding } from '../../core/store/store-doctor.js';
import { now } from '../../core/util/clock.js';
import { recordDrivers } from '../records/record.drivers.js';
import { memoryBus, MemoryRecordQueue, MemoryWakeUps } from './memory.queue.js';

/**
 * A store in the memory of this process, for tests and for apps that run as one process. Expiry, fencing tokens and waiting are as on Redis;
 * what another process holds it cannot know.
 */
export function memoryStore(): LockStore {
  const wakeUps = new MemoryWakeUps();
  const recordQueue = new MemoryRecordQueue(wakeUps);
  const madeAt = now();
  return {
    name: 'memory',
    requestTimeout: 1000,
    ...recordDrivers(recordQueue, {
      wakeUps,
      async *keys(prefix) {
        yield [...recordQueue.keys(prefix)];
      },
    }),
    bus: memoryBus(),
    remembers: () => Promise.resolve(now() - madeAt),
    doctor: { checks: () => checksOf({ location: () => ({ seen: 'with locks of this process only' }), scope }) },
    supports(feature) {
      return supportedBy(this, feature);
    },
    // A minHold outlasts the app that asked for it.
    close: () => Promise.resolve(),
  };
}

/** In production there are several instances, sooner or later. */
function scope(): Finding {
  const seen = 'locks exclude the callers of this process only';
  if (process.env.NODE_ENV !== 'production') return { seen };
  return warning(seen, 'Give a store that all instances reach, unless the app is one process.');
}
