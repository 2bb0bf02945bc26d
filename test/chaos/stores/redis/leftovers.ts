import type { Redis } from 'ioredis';
import type { Leftover } from '../store.js';

/** Each key that is neither a fencing token, nor a `minHold`, nor a latch, nor what operators have done, which all expire, nor a queue in which only killed processes stand. */
export async function leftoversOf(redis: Redis, pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
  const leftovers = await Promise.all((await redis.keys('*')).sort().map((key) => leftoverOf(redis, key, pidsOfKilled)));
  return leftovers.filter((leftover) => leftover !== undefined);
}

async function leftoverOf(redis: Redis, key: string, pidsOfKilled: ReadonlySet<number>): Promise<Leftover | undefined> {
  // Since when a member of a quorum remembers.
  if (key === 'nestjs-distributed-lock:since') return undefined;
  const left = await redis.pttl(key);
  if (left === -2) return undefined;
  if (left === -1) return { key, what: `${key}, which never expires` };
  if (/:fence$|:audit$|\bkept:|latch-/.test(key)) return undefined;
  const type = await redis.type(key);
  if (!key.endsWith(':queue')) return { key, what: `${key}: a ${type} for ${left} ms: ${await valueOf(redis, key, type)}` };
  // An owner is `app@host:pid:uuid`.
  const entries = (await redis.zrange(key, '0', '-1')).filter(
    (entry) => !pidsOfKilled.has(Number(/:(\d+):[0-9a-f-]{36}/.exec(entry)?.[1])),
  );
  const owners = entries.map((entry) => entry.split('\n')[0]!);
  return entries.length === 0 ? undefined : { key, what: `${key}: entries of live processes: ${JSON.stringify(entries)}`, owners };
}

async function valueOf(redis: Redis, key: string, type: string): Promise<string> {
  if (type === 'string') return (await redis.get(key)) ?? '';
  return type === 'zset' ? (await redis.zrange(key, '0', '-1', 'WITHSCORES')).join(' ') : '';
}
