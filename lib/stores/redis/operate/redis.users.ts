import { globOf } from '../redis.keys.js';

const CHANNELS = 'nestjs-distributed-lock:';

/** The commands from `type` on are for read/write locks, semaphores and latches. */
const LOCKS = words(
  'eval evalsha publish subscribe unsubscribe info time exists get mget set del pttl pexpire zadd zpopmin zrange zrank zrem zscore',
  'zrevrangebyscore pubsub|numsub type pexpireat zrangebyscore zrevrange hexists hmget hset hincrby hdel hgetall',
);
const LOOKS = words(
  'eval evalsha info time type get strlen pttl zcard zcount zrange zrangebyscore zscore hget hexists hkeys pubsub|numsub publish subscribe',
  'unsubscribe scan',
);
const FREES = words('exists set del zpopmin zrevrange zrevrangebyscore zadd zrem pexpire pexpireat xadd');
const EXAMINES = words('config|get cluster|info');
const OF_CLUSTER = words('cluster|slots cluster|info');

/**
 * The users of an app, of who only looks, of who frees keys, and of this doctor.
 *
 * @param keyPrefix of ioredis, which puts it before every name.
 * @param namespace before every key.
 * @param isCluster whether the client asks for the slots.
 */
export function usersFor(keyPrefix: string, namespace: string, isCluster: boolean): string {
  const [first, start] = [globOf(keyPrefix), globOf(keyPrefix + namespace)];
  // Beside a key stand its fence and its queue: the whole name in braces.
  const keys = start === '' ? '~*' : `~${start}* ~${first}{${start}*`;
  const line = (name: string, channels: readonly string[], commands: readonly string[]): string =>
    [
      `user ${name} on >secret ${keys}`,
      ...channels.map((channel) => `&${CHANNELS}${channel}`),
      ...new Set([...commands, ...(isCluster ? OF_CLUSTER : [])].map((command) => `+${command}`)),
    ].join(' ');
  return [
    line('locks', ['*'], LOCKS),
    line('viewer', ['inbox:*', 'ops*'], LOOKS),
    `${line('operator', ['*'], [...LOOKS, ...FREES])}${start === '' ? '' : ` ~${first}${CHANNELS}audit`}`,
    line('doctor', ['*'], [...LOCKS, ...EXAMINES]),
  ].join('\n');
}

function words(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.split(' '));
}
