// What is at a server, as a text that is the same in every run: times, tokens, owners, inboxes and random ids are replaced by names in <>, and back.
import type { Redis } from 'ioredis';

/** What stands for what in one run. */
export interface Names {
  /** inboxes, in the order of their numbers */
  readonly inboxes: readonly string[];
  /** the first tokens of the blocks that were given, in this order */
  readonly tokens: number[];
}

const OWNER = 'shop@host:1:00000000-0000-4000-8000-00000000000';
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const RANK = 2 ** 52;
/** Seconds after which something expires. All that is measured is a little less. */
const SPANS = [1, 30, 60, 100, 200, 3600];
const LATENESS = 0.25;
const DAY = 86_400_000;

/** `A` to `F`. */
export const ownerOf = (letter: string): string => OWNER + letter.toLowerCase();

/** A text with names in place of what differs between runs. */
export function named(text: string, { inboxes }: Names): string {
  const known = inboxes.reduce((all, inbox, index) => all.replaceAll(inbox, `<inbox ${index + 1}>`), text);
  return known.replace(new RegExp(`${OWNER}([a-f])`, 'g'), (_, letter: string) => `<${letter.toUpperCase()}>`).replace(UUID, '<uuid>');
}

export function spanOf(ms: number): string {
  if (ms < 0) return 'never';
  const span = SPANS.find((seconds) => ms <= 1000 * seconds && ms > 1000 * seconds * (seconds === 1 ? 0 : 1 - LATENESS));
  if (span === undefined) throw new Error(`No span of time is ${ms} ms: ${SPANS.join(', ')} s are known`);
  return `in ${span} s`;
}

/** Milliseconds or microseconds since 1970, by their size. */
function timeOf(value: string, now: number): string {
  const number = Number(value);
  if (!Number.isFinite(number) || number < now - DAY) return value;
  if (number < 100 * now) return `<now + ${spanOf(number - now).slice(3)}>`;
  return number < RANK ? '<µs>' : '<2^52 + µs>';
}

export function tokenOf(value: string | number, { tokens }: Names): string {
  const number = Number(value);
  const index = tokens.findLastIndex((token) => token <= number);
  if (index < 0 || number - tokens[index]! > 100) return String(value);
  const more = number - tokens[index]!;
  return `<token ${index + 1}>${more === 0 ? '' : ` + ${more}`}`;
}

/** Every key, a line each. */
export async function dumpOf(redis: Redis, names: Names): Promise<string[]> {
  const keys = (await redis.keys('*')).sort();
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1000 + Number(micros) / 1000;
  return Promise.all(
    keys.map(async (key) => {
      const [type, ms] = await Promise.all([redis.type(key), redis.pttl(key)]);
      const value = JSON.stringify(await readers[type]!(redis, key, names, now));
      return `  ${key} → ${type}, expires ${spanOf(ms)}: ${value}`;
    }),
  );
}

type Reader = (redis: Redis, key: string, names: Names, now: number) => Promise<unknown>;

const readers: Record<string, Reader> = {
  string: async (redis, key, names) => {
    const value = (await redis.get(key))!;
    return key.endsWith(':fence') ? tokenOf(value, names) : named(value, names);
  },
  zset: async (redis, key, names, now) => {
    const all = await redis.zrange(key, '0', '-1', 'WITHSCORES');
    return Array.from({ length: all.length / 2 }, (_, i) => [named(all[2 * i]!, names), timeOf(all[2 * i + 1]!, now)]);
  },
  hash: async (redis, key, names, now) => {
    const fields = Object.entries(await redis.hgetall(key)).sort(([a], [b]) => (a < b ? -1 : 1));
    return fields.map(([field, value]) => [named(field, names), named(value, names).replace(/\d+$/, (end: string) => timeOf(end, now))]);
  },
};

const LINE = /^ {2}(.*) → (\w+), expires (never|in (\d+) s): (.*)$/;

/** Writes what these lines say to an empty server, by plain commands, as a process of another version would have left it. */
export async function restore(redis: Redis, lines: readonly string[], { inboxes, tokens }: Names): Promise<void> {
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1000;
  let order = 0;
  const valueOf = (text: string): string =>
    text
      .replace(/<inbox (\d+)>/g, (_, number: string) => inboxes[Number(number) - 1]!)
      .replace(/<([A-F])>/g, (_, letter: string) => ownerOf(letter))
      .replace(/<token (\d+)>(?: \+ (\d+))?/g, (_, number: string, more = '0') => String(tokens[Number(number) - 1]! + Number(more)))
      .replace(/<now \+ (\d+) s>/g, (_, span: string) => String(now + 1000 * Number(span)))
      .replace('<2^52 + µs>', () => String(RANK + 1000 * now + order++))
      .replace('<µs>', () => String(1000 * now + order++));
  for (const line of lines) {
    const [, key, type, , span, json] = LINE.exec(line) ?? [];
    if (key === undefined) throw new Error(`Not a line of a dump: ${line}`);
    const value = JSON.parse(json!) as string | [string, string][];
    if (typeof value === 'string') await redis.set(key, valueOf(value));
    for (const [first, second] of typeof value === 'string' ? [] : value) {
      if (type === 'zset') await redis.zadd(key, Number(valueOf(second).replace('inf', 'Infinity')), valueOf(first));
      else if (type === 'hash') await redis.hset(key, valueOf(first), valueOf(second));
      else throw new Error(`No state of locks is a ${type}`);
    }
    if (span !== undefined) await redis.pexpire(key, 1000 * Number(span));
  }
}
