import { readFileSync } from 'node:fs';
import { Locks, redisStore } from '../library.mjs';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

export function open({ port }) {
  const locks = new Locks(redisStore({ url: `redis://127.0.0.1:${port}` }), { logger: false });
  const acquire = (key, ttl) => locks.acquire(key, { keyTimeout: ttl, waitTimeout: Infinity });
  return {
    version,
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      const lease = await acquire(key, ttl);
      try {
        return await work();
      } finally {
        await lease.release();
      }
    },
    async hold(key, ttl) {
      const lease = await acquire(key, ttl);
      return () => lease.release();
    },
    close: () => locks.close(),
  };
}
