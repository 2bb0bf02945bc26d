import type { Redis } from 'ioredis';

/** Each key that is neither a fencing token, nor a latch that expires, nor a queue in which only killed processes stand. */
export async function leftoversOf(redis: Redis, pidsOfKilled: ReadonlySet<number>): Promise<string[]> {
  const lines = await Promise.all((await redis.keys('*')).sort().map((key) => problemOf(redis, key, pidsOfKilled)));
  return lines.filter((line) => line !== undefined);
}

async function problemOf(redis: Redis, key: string, pidsOfKilled: ReadonlySet<number>): Promise<string | undefined> {
  const left = await redis.pttl(key);
  if (left === -2) return undefined;
  if (left === -1) return `${key} never expires`;
  if (/:fence$/.test(key) || /latch-/.test(key)) return undefined;
  const type = await redis.type(key);
  if (/:queue$/.test(key)) {
    const places = await redis.zrange(key, '0', '-1');
    const alive = places.filter((place) => !pidsOfKilled.has(pidOf(place)));
    return alive.length === 0 ? undefined : `${key}: places of live processes: ${alive.map((place) => place.split('\n')[0]).join(', ')}`;
  }
  const value = type === 'string' ? await redis.get(key) : type === 'zset' ? (await redis.zrange(key, '0', '-1')).join(' ') : '';
  return `${key}: a ${type} for ${left} ms: ${value}`;
}

/** An owner is `app@host:pid:uuid`. */
function pidOf(place: string): number {
  return Number(/:(\d+):[0-9a-f-]{36}/.exec(place)?.[1]);
}
