// redlock 5 and its fork have one interface.
import { connect, versionOf } from './client.mjs';

export function openWith(Redlock, name, { port, retryDelay }) {
  const client = connect(port);
  const settings = { retryCount: -1, retryDelay, retryJitter: Math.round(retryDelay / 2) };
  const redlock = new Redlock([client], settings);
  redlock.on('error', () => undefined);
  return {
    version: versionOf(name),
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      const lock = await redlock.acquire([key], ttl);
      try {
        return await work();
      } finally {
        await lock.release();
      }
    },
    // Only `using` renews.
    hold: (key, ttl) =>
      new Promise((resolve, reject) => {
        redlock.using([key], ttl, settings, () => new Promise((end) => resolve(end))).catch(reject);
      }),
    close: () => client.disconnect(),
  };
}
