// The classic recipe by hand: SET NX PX, compare-and-delete by EVALSHA, a pause between two tries; a timer for each lock renews it. No fencing.
import { randomUUID } from 'node:crypto';
import { connect, sha1, sleep, versionOf } from './client.mjs';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const RENEW = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`;
const SHA = sha1(RELEASE);
const RENEW_SHA = sha1(RENEW);

export async function open({ port, retryDelay }) {
  const client = connect(port);
  await client.script('LOAD', RELEASE);
  await client.script('LOAD', RENEW);
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
    async hold(key, ttl) {
      const owner = randomUUID();
      await client.set(key, owner, 'PX', ttl, 'NX');
      // As often as ours.
      return setInterval(() => client.evalsha(RENEW_SHA, 1, key, owner, ttl), ttl / 3);
    },
    close: () => client.disconnect(),
  };
}
