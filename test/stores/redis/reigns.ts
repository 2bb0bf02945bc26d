import type { Redis } from 'ioredis';

const WRITE = `
local time, seen = redis.call('TIME'), redis.call('GET', KEYS[2]) or '0'
local refused = tonumber(ARGV[2]) < tonumber(seen)
if not refused then redis.call('SET', KEYS[2], ARGV[2]) end
local outcome = refused and 'refused' or 'written'
redis.call('RPUSH', KEYS[1], table.concat({time[1] .. string.format('%06d', time[2]), ARGV[1], ARGV[2], outcome}, ' '))
return outcome`;

/** One try of a leader to write to the log. */
export interface Entry {
  /** Milliseconds on the server's clock. */
  readonly at: number;
  readonly leader: string;
  readonly token: number;
  readonly outcome: 'written' | 'refused';
}

/** A resource that leaders write to, which refuses a smaller token than it has seen. Each try is in its log, in the order of the server. */
export const reigns = {
  write: (redis: Redis, leader: string, token: number) => redis.eval(WRITE, 2, 'reigns', 'reigns:token', leader, token) as Promise<string>,
  async read(redis: Redis): Promise<Entry[]> {
    const lines = await redis.lrange('reigns', 0, -1);
    return lines.map((line) => {
      const [at, leader, token, outcome] = line.split(' ') as [string, string, string, Entry['outcome']];
      return { at: Number(at) / 1_000, leader, token: Number(token), outcome };
    });
  },
};

export interface Verdict {
  /** The terms, in the order of their first write. */
  readonly terms: { leader: string; token: number; from: number; to: number }[];
  /** Tries by a term after a later one had begun: at such a time there were two who took themselves for the leader. */
  readonly late: Entry[];
}

/** Judges by the log alone, whatever the leaders say of themselves. */
export function judge(entries: readonly Entry[]): Verdict {
  const terms = new Map<number, Verdict['terms'][number]>();
  const late: Entry[] = [];
  let newest = 0;
  for (const entry of entries) {
    const { at, leader, token } = entry;
    if (token < newest) late.push(entry);
    else newest = token;
    const term = terms.get(token) ?? { leader, token, from: at, to: at };
    term.to = at;
    if (term.leader !== leader) late.push(entry);
    terms.set(token, term);
  }
  return { terms: [...terms.values()], late };
}
