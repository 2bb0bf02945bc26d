import { readFileSync } from 'node:fs';
import { Locks, redisStore } from '../library.mjs';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** @param {{ port: number, as?: 'using' | 'ignoring' | 'mutex' }} options `as`: another way to use it. */
export function open({ port, as }) {
  const locks = new Locks(redisStore({ url: `redis://127.0.0.1:${port}` }), { logger: false });
  const held = async (lock, ttl, work) => {
    const lease = await lock.acquire({ keyTimeout: ttl, waitTimeout: Infinity });
    try {
      return await work();
    } finally {
      await lease.release();
    }
  };
  const locked = (key, ttl, work) => held(locks.mutex(key), ttl, work);
  const using = (onLost) => (key, ttl, work) => locks.using(key, work, { keyTimeout: ttl, waitTimeout: Infinity, onLost });
  const others = { using: { locked: using('throw') }, ignoring: { locked: using('ignore') }, mutex: { reading: locked, writing: locked } };
  return {
    version,
    keyOf: (key) => key,
    locked,
    reading: (key, ttl, work) => held(locks.readWriteLock(key).read, ttl, work),
    writing: (key, ttl, work) => held(locks.readWriteLock(key).write, ttl, work),
    permitted: (key, permits, ttl, work) => held(locks.semaphore(key, { permits }), ttl, work),
    hold: (key, ttl) => locks.acquire(key, { keyTimeout: ttl, waitTimeout: Infinity }),
    close: () => locks.close(),
    ...others[as],
  };
}
