import { Mutex, Semaphore } from 'redis-semaphore';
import { connect, versionOf } from './client.mjs';

export function open({ port, retryDelay }) {
  const client = connect(port);
  const optionsOf = (lockTimeout) => ({ lockTimeout, acquireTimeout: Infinity, retryInterval: retryDelay, onLockLost: () => undefined });
  const mutex = (key, lockTimeout) => new Mutex(client, key, optionsOf(lockTimeout));
  return {
    version: versionOf('redis-semaphore'),
    keyOf: (key) => `mutex:${key}`,
    async locked(key, ttl, work) {
      const lock = mutex(key, ttl);
      await lock.acquire();
      try {
        return await work();
      } finally {
        await lock.release();
      }
    },
    async permitted(key, permits, lockTimeout, work) {
      const lock = new Semaphore(client, key, permits, optionsOf(lockTimeout));
      await lock.acquire();
      try {
        return await work();
      } finally {
        await lock.release();
      }
    },
    async hold(key, ttl) {
      const lock = mutex(key, ttl);
      await lock.acquire();
      return lock;
    },
    close: () => client.disconnect(),
  };
}
