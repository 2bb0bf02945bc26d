// The classic recipe by hand: SET NX PX, compare-and-delete by EVALSHA, a pause between two tries. No fencing, no renewal.
import { randomUUID } from 'node:crypto';
import { connect, sha1, sleep, versionOf } from './client.mjs';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const SHA = sha1(RELEASE);

export async function open({ port, retryDelay }) {
  const client = connect(port);
  await client.script('LOAD', RELEASE);
  return {
    version: `ioredis ${versionOf('ioredis')}`,
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      const owner = randomUUID();
      while ((await client.set(key, owner, 'PX', ttl, 'NX')) !== 'OK') await sleep(retryDelay * (0.5 + Math.random()));
      try {
        return await work();
      } finally {
        await client.evalsha(SHA, 1, key, owner);
      }
    },
    close: () => client.disconnect(),
  };
}
