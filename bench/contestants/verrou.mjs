import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';
import { connect, versionOf } from './client.mjs';

export function open({ port, retryDelay }) {
  const client = connect(port);
  const verrou = new Verrou({ default: 'redis', stores: { redis: { driver: redisStore({ connection: client }) } } });
  return {
    version: versionOf('@verrou/core'),
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      const lock = verrou.createLock(key, ttl);
      await lock.acquire({ retry: { delay: retryDelay } });
      try {
        return await work();
      } finally {
        await lock.release();
      }
    },
    close: () => client.disconnect(),
  };
}
