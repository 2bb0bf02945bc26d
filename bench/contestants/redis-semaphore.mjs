import { Mutex } from 'redis-semaphore';
import { connect, versionOf } from './client.mjs';

export function open({ port, retryDelay }) {
  const client = connect(port);
  const mutex = (key, lockTimeout) =>
    new Mutex(client, key, { lockTimeout, acquireTimeout: Infinity, retryInterval: retryDelay, onLockLost: () => undefined });
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
    async hold(key, ttl) {
      const lock = mutex(key, ttl);
      await lock.acquire();
      return () => lock.release();
    },
    close: () => client.disconnect(),
  };
}
