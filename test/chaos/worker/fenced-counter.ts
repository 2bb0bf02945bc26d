import type { Redis } from 'ioredis';

// KEYS counter, seen, accepted, damaged. ARGV token. Reply: the value, or -1 where the token is smaller than one that was seen.
const READ = `
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(ARGV[1]) < tonumber(seen) then return -1 end
redis.call('SET', KEYS[2], ARGV[1])
return tonumber(redis.call('GET', KEYS[1]) or '0')`;

// KEYS as above. ARGV token, value that was read. Reply: 1 written, 0 refused. A write over a value that it did not read is damage.
const WRITE = `
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(ARGV[1]) < tonumber(seen) then return 0 end
if tonumber(redis.call('GET', KEYS[1]) or '0') ~= tonumber(ARGV[2]) then redis.call('INCR', KEYS[4]) end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2] + 1)
redis.call('INCR', KEYS[3])
return 1`;

const keysOf = (key: string): string[] => ['counter', 'seen', 'accepted', 'damaged'].map((what) => `${what}:${key}`);

/** A counter at a resource that refuses a smaller token than it has seen, reads included. It must be exact, whatever happens. */
export class FencedCounter {
  constructor(private readonly resource: Redis) {}

  /** `undefined`: the token is refused. */
  async read(key: string, token: number): Promise<number | undefined> {
    const value = (await this.resource.eval(READ, 4, ...keysOf(key), token)) as number;
    return value < 0 ? undefined : value;
  }

  async write(key: string, token: number, read: number): Promise<boolean> {
    return (await this.resource.eval(WRITE, 4, ...keysOf(key), token, read)) === 1;
  }
}

export interface FencedTotals {
  key: string;
  counter: number;
  accepted: number;
  /** writes over a value that the writer had not read */
  damaged: number;
}

export async function fencedTotals(resource: Redis): Promise<FencedTotals[]> {
  const keys = (await resource.keys('counter:*')).map((name) => name.slice('counter:'.length)).sort();
  return Promise.all(
    keys.map(async (key) => {
      const [counter, , accepted, damaged] = (await resource.mget(keysOf(key))).map(Number);
      return { key, counter: counter!, accepted: accepted!, damaged: damaged! };
    }),
  );
}
