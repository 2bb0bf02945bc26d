// The least that gives a fencing token: two small scripts by hand, without a queue, renewal or anything around them. What a lock costs beyond
// this is the library's.
import { randomUUID } from 'node:crypto';
import { connect, sleep, versionOf } from './client.mjs';

// As our own tokens: the server's clock in microseconds, or one more than the last, so that they grow also where that clock went back.
const ACQUIRE = `
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return false end
local time, last = redis.call('TIME'), redis.call('GET', KEYS[2])
local token = time[1] .. string.format('%06d', time[2])
if last and last + 1 > tonumber(token) then token = string.format('%.0f', last + 1) end
redis.call('SET', KEYS[2], token, 'PX', 3600000)
return token`;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

export async function open({ port, retryDelay }) {
  const client = connect(port);
  const acquire = await client.script('LOAD', ACQUIRE);
  const release = await client.script('LOAD', RELEASE);
  return {
    version: `ioredis ${versionOf('ioredis')}`,
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      const owner = randomUUID();
      while (!(await client.evalsha(acquire, 2, key, `{${key}}:fence`, owner, ttl))) await sleep(retryDelay * (0.5 + Math.random()));
      try {
        return await work();
      } finally {
        await client.evalsha(release, 1, key, owner);
      }
    },
    close: () => client.disconnect(),
  };
}
