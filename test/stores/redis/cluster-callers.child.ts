// Callers of one process that want a key again and again, and add to a counter at a resource that compares fencing tokens.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, LockError } from 'nestjs-distributed-lock/core';
import { redisStore, type NodeRedisClient, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';
import { closeNodeRedis, storeOver } from '../../support/redis-clients.js';

export interface CallersArgs {
  where: RedisStoreOptions;
  resource: RedisOptions;
  keys: string[];
  callers: number;
  options: { keyTimeout: number; waitTimeout: number; retryInterval: number; fair?: boolean };
}
export interface Tally {
  /** writes that the resource took, and those that it refused */
  written: number;
  refused: number;
  /** how often a caller met another one of its key inside */
  met: number;
  errors: string[];
  lost: number;
  /** milliseconds from a call to its lease or its error */
  longest: number;
  /** on the clock of `Date.now`: when bodies began under each key, at most one in 5 ms */
  entries: Record<string, number[]>;
}
export type CallersMessage = { type: 'ready' } | ({ type: 'done' } & Tally);

// KEYS  resource; ARGV  token, 'read' | 'write', value to write
const FENCED = `
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 'refused' end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
if ARGV[2] == 'read' then return redis.call('HGET', KEYS[1], 'value') or '0' end
redis.call('HSET', KEYS[1], 'value', ARGV[3])
return 'written'`;

const { where, resource, keys, callers, options } = JSON.parse(process.argv[2]!) as CallersArgs;
const redis = new Redis(resource);
let lent: NodeRedisClient | undefined;
const locks = new Locks(redisStore(storeOver(where, (client) => (lent = client))), { logger: false });
const tally: Tally = {
  written: 0,
  refused: 0,
  met: 0,
  errors: [],
  lost: 0,
  longest: 0,
  entries: Object.fromEntries(keys.map((key) => [key, []])),
};
let goesOn = true;
locks.on('lost', () => tally.lost++);

async function add(key: string, token: number): Promise<void> {
  const name = `counter:${key}`;
  const entries = tally.entries[key]!;
  if (Date.now() > (entries.at(-1) ?? 0) + 5) entries.push(Date.now());
  if ((await redis.incr(`inside:${key}`)) > 1) tally.met++;
  const value = await redis.eval(FENCED, 1, name, token, 'read');
  await pause(1);
  const answer = value === 'refused' ? value : await redis.eval(FENCED, 1, name, token, 'write', Number(value) + 1);
  await redis.decr(`inside:${key}`);
  if (answer === 'written') tally.written++;
  else tally.refused++;
}

async function call(key: string): Promise<void> {
  const start = performance.now();
  const settled = (): void => void (tally.longest = Math.max(tally.longest, performance.now() - start));
  try {
    await locks.using(
      key,
      (lease) => {
        settled();
        return add(key, lease.fencingToken!);
      },
      { ...options, onLost: 'ignore' },
    );
  } catch (error) {
    settled();
    if (tally.errors.length < 20) tally.errors.push(error instanceof LockError ? `${error.name} ${error.message}` : String(error));
  }
}

async function caller(number: number): Promise<void> {
  while (goesOn) {
    await call(keys[number % keys.length]!);
    await pause(1);
  }
}

let running: Promise<unknown>;
process.on('message', ({ type }: { type: 'go' | 'stop' }) => {
  if (type === 'go') running = Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
  if (type !== 'stop') return;
  goesOn = false;
  void running.then(async () => {
    await locks.close();
    redis.disconnect();
    if (lent) await closeNodeRedis(lent);
    tellParent({ type: 'done', ...tally });
    process.disconnect();
  });
});
await Promise.all([redis.ping(), locks.acquire(`warm-up:${process.pid}`).then((lease) => lease.release())]);
tellParent({ type: 'ready' });
