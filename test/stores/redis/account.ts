import type { Redis } from 'ioredis';

const WRITE_CHECKED = `
if tonumber(ARGV[2]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 'refused' end
redis.call('HSET', KEYS[1], 'checked', ARGV[1], 'token', ARGV[2])
return 'written'`;

/** One balance, kept twice: by a resource that refuses a smaller fencing token than it has seen, and by one that does not look. */
export const deposit = {
  read: async (redis: Redis): Promise<number> => Number((await redis.hget('balance', 'checked')) ?? 0),
  write: (redis: Redis, balance: number, token: number) => redis.eval(WRITE_CHECKED, 1, 'balance', balance, token) as Promise<string>,
  async writeUnchecked(redis: Redis, balance: number): Promise<string> {
    await redis.hset('balance', 'unchecked', balance);
    return 'written';
  },
};
