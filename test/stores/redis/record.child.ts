// Reads and writes a record of two fields that nothing guards but the lock, if it is told to use it: each field by itself, with a pause between.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, type ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';

export interface RecordArgs {
  connection: RedisOptions;
  policy: ReadWritePolicy;
  callers: number;
  /** Calls of the whole process; every so many is a write. */
  calls: number;
  writeEvery: number;
  guarded: boolean;
}
export type RecordMessage = { type: 'ready' } | { type: 'done'; torn: number; mostReaders: number; backwards: number; lost: number };

const { connection, policy, callers, calls, writeEvery, guarded } = JSON.parse(process.argv[2]!) as RecordArgs;
const redis = new Redis(connection);
const locks = new Locks(redisStore({ options: connection }));
const { read, write } = locks.readWriteLock('lock', { policy });
const options = { keyTimeout: 20_000, waitTimeout: Infinity, retryInterval: 5_000 };
const found = { torn: 0, mostReaders: 0, backwards: 0, lost: 0 };
locks.on('lost', () => void found.lost++);
let left = calls;
let lastToken = 0;

/** A token that is smaller than one that this process has seen; a read's may be the same. */
function look(token: number | null): void {
  if (token === null) return;
  if (token < lastToken) found.backwards++;
  lastToken = token;
}

async function reading(token: number | null): Promise<void> {
  look(token);
  found.mostReaders = Math.max(found.mostReaders, await redis.incr('readers'));
  const one = await redis.hget('record', 'one');
  await nextTurn();
  const [[, two], [, writers]] = (await redis.pipeline().hget('record', 'two').get('writers').decr('readers').exec())! as [
    [unknown, string],
    [unknown, string],
    unknown,
  ];
  if (one !== two || Number(writers) > 0) found.torn++;
}

async function writing(token: number | null): Promise<void> {
  look(token);
  const [[, writers], [, readers], [, one]] = (await redis.pipeline().incr('writers').get('readers').hget('record', 'one').exec())! as [
    unknown,
    unknown,
  ][] as [[unknown, number], [unknown, string | null], [unknown, string | null]];
  if (writers > 1 || Number(readers) > 0) found.torn++;
  await redis.hset('record', 'one', Number(one) + 1);
  await nextTurn();
  await redis
    .pipeline()
    .hset('record', 'two', Number(one) + 1)
    .decr('writers')
    .exec();
}

async function call(): Promise<void> {
  while (left-- > 0) {
    const writes = left % writeEvery === 0;
    if (!guarded) await (writes ? writing(null) : reading(null));
    else if (writes) await write.using((lease) => writing(lease.fencingToken), options);
    else await read.using((lease) => reading(lease.fencingToken), options);
  }
}

process.once('message', () => {
  void Promise.all(Array.from({ length: callers }, call)).then(async () => {
    await locks.close();
    redis.disconnect();
    tellParent({ type: 'done', ...found });
    process.disconnect();
  });
});
await Promise.all([redis.ping(), locks.acquire('warm-up', { retryCount: 0 }).then((lease) => lease.release())]);
tellParent({ type: 'ready' });
