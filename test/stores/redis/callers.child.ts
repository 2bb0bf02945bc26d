// Callers of one process that want a key again and again, and add to a counter at a resource that compares fencing tokens.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, StoreError, type LockError } from 'nestjs-distributed-lock/core';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';
import { storeOver } from '../../support/redis-clients.js';

export interface CallersArgs {
  store: RedisStoreOptions;
  resource: RedisOptions;
  keys: string[];
  callers: number;
  options: { keyTimeout: number; waitTimeout: number; retryInterval: number };
}
export interface Tally {
  /** writes that the resource took, and those that it refused */
  written: number;
  refused: number;
  /** how often a caller met another one of its key inside */
  met: number;
  lost: number;
  /** code and message, the first of them */
  errors: string[];
  /** those that a store will not get over */
  final: string[];
}
export type CallersMessage = { type: 'ready' } | ({ type: 'done' } & Tally);

// The token of a reader counts, too: else an older holder could write between the read and the write of a newer one.
// KEYS  resource; ARGV  token, 'read' | 'write', value to write
const FENCED = `
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 'refused' end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
if ARGV[2] == 'read' then return redis.call('HGET', KEYS[1], 'value') or '0' end
redis.call('HSET', KEYS[1], 'value', ARGV[3])
return 'written'`;

const { store, resource, keys, callers, options } = JSON.parse(process.argv[2]!) as CallersArgs;
const redis = new Redis(resource);
const locks = new Locks(redisStore(storeOver(store)), { logger: false });
const tally: Tally = { written: 0, refused: 0, met: 0, lost: 0, errors: [], final: [] };
let goesOn = true;
locks.on('lost', () => tally.lost++);

async function add(key: string, token: number): Promise<void> {
  const name = `counter:${key}`;
  if ((await redis.incr(`inside:${key}`)) > 1) tally.met++;
  const value = await redis.eval(FENCED, 1, name, token, 'read');
  await pause(1);
  const answer = value === 'refused' ? value : await redis.eval(FENCED, 1, name, token, 'write', Number(value) + 1);
  await redis.decr(`inside:${key}`);
  if (answer === 'written') tally.written++;
  else tally.refused++;
}

async function call(key: string): Promise<void> {
  try {
    await locks.using(key, (lease) => add(key, lease.fencingToken!), { ...options, onLost: 'ignore' });
  } catch (error) {
    const { code, message } = error as LockError;
    if (tally.errors.length < 20) tally.errors.push(`${code} ${message}`);
    if (error instanceof StoreError && !error.transient) tally.final.push(message);
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
    tellParent({ type: 'done', ...tally });
    process.disconnect();
  });
});
await Promise.all([redis.ping(), locks.using(`warm-up:${process.pid}`, () => undefined)]);
tellParent({ type: 'ready' });
