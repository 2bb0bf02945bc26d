// Many callers of one process add 1 to a balance while the servers of the lock fail over. The resource is a server of its own, which checks fencing tokens.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, type StoreError } from 'nestjs-distributed-lock/core';
import { redisStore, type NodeRedisClient, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../../support/child.js';
import { closeNodeRedis, storeOver } from '../../support/redis-clients.js';

export interface FailoverArgs {
  store: RedisStoreOptions;
  resource: RedisOptions;
  callers: number;
  /** ms */
  patience: number;
}
/** `written`: sections that the resource took; `refused`: that came with an old token; `longest`: ms beyond the patience that a call took; `errors`: by code; `final`: one that was not transient. */
export type FailoverMessage =
  { type: 'ready' } | { type: 'done'; written: number; refused: number; longest: number; errors: Record<string, number>; final?: string };

/** The token of a reader counts too: else an older holder could write between the read and the write of a newer one. */
const CHECKED = `
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return -1 end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
if ARGV[2] then redis.call('HSET', KEYS[1], 'balance', ARGV[2]) end
return tonumber(redis.call('HGET', KEYS[1], 'balance') or 0)`;

const { store, resource, callers, patience } = JSON.parse(process.argv[2]!) as FailoverArgs;
const redis = new Redis(resource);
let lent: NodeRedisClient | undefined;
const locks = new Locks(redisStore(storeOver(store, (client) => (lent = client))), { logger: false });
const found = { written: 0, refused: 0, longest: 0, errors: {} as Record<string, number>, final: undefined as string | undefined };
let isRunning = true;

const checked = (...args: number[]): Promise<number> => redis.eval(CHECKED, 1, 'deposit', ...args) as Promise<number>;

async function call(): Promise<void> {
  const options = { keyTimeout: 3000, waitTimeout: patience, retryInterval: 200, onLost: 'ignore' } as const;
  const start = performance.now();
  let inside = 0;
  try {
    await locks.using(
      'stock',
      async ({ fencingToken }) => {
        const begin = performance.now();
        const balance = await checked(fencingToken!);
        const isWritten = balance >= 0 && (await checked(fencingToken!, balance + 1)) >= 0;
        found[isWritten ? 'written' : 'refused']++;
        inside = performance.now() - begin;
      },
      options,
    );
  } catch (error) {
    const { code, transient, message } = error as StoreError;
    if (code === 'LOCK_STORE' && !transient) found.final = message;
    found.errors[code] = (found.errors[code] ?? 0) + 1;
  }
  found.longest = Math.max(found.longest, performance.now() - start - inside - patience);
}

process.once('message', () => (isRunning = false));
await locks.using('warm-up', () => undefined, { waitTimeout: 10_000 });
tellParent({ type: 'ready' });
await Promise.all(
  Array.from({ length: callers }, async () => {
    while (isRunning) await call();
  }),
);
await locks.close();
redis.disconnect();
if (lent) await closeNodeRedis(lent);
tellParent({ type: 'done', ...found });
process.disconnect();
