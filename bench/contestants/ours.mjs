import { readFileSync } from 'node:fs';
import { Locks, redisStore } from '../library.mjs';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

export function open({ port }) {
  const locks = new Locks(redisStore({ url: `redis://127.0.0.1:${port}` }), { logger: false });
  const acquire = (key, ttl) => locks.acquire(key, { keyTimeout: ttl, waitTimeout: Infinity });
  const held = async (lock, ttl, work) => {
    const lease = await lock.acquire({ keyTimeout: ttl, waitTimeout: Infinity });
    try {
      return await work();
    } finally {
      await lease.release();
    }
  };
  return {
    version,
    keyOf: (key) => key,
    locked: (key, ttl, work) => held(locks.mutex(key), ttl, work),
    reading: (key, ttl, work) => held(locks.readWriteLock(key).read, ttl, work),
    writing: (key, ttl, work) => held(locks.readWriteLock(key).write, ttl, work),
    permitted: (key, permits, ttl, work) => held(locks.semaphore(key, { permits }), ttl, work),
    async hold(key, ttl) {
      const lease = await acquire(key, ttl);
      return () => lease.release();
    },
    close: () => locks.close(),
  };
}
