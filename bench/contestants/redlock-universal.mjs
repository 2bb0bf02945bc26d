import { createLock, IoredisAdapter } from 'redlock-universal';
import { connect, versionOf } from './client.mjs';

const FOR_EVER = 1_000_000_000;

export function open({ port, retryDelay }) {
  const client = connect(port);
  const adapter = new IoredisAdapter(client);
  const lockOf = (key, ttl) => createLock({ adapter, key, ttl, retryAttempts: FOR_EVER, retryDelay });
  return {
    version: versionOf('redlock-universal'),
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      const lock = lockOf(key, ttl);
      const handle = await lock.acquire();
      try {
        return await work();
      } finally {
        await lock.release(handle);
      }
    },
    // Only `using` renews.
    hold: (key, ttl) =>
      new Promise((resolve, reject) => {
        lockOf(key, ttl)
          .using(() => new Promise((end) => resolve(end)))
          .catch(reject);
      }),
    close: () => client.disconnect(),
  };
}
