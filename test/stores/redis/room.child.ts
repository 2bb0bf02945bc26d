// Many callers at once of a room with so many permits. Each says in a log that it goes in and out, and counts who is inside.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';

export interface RoomArgs {
  connection: RedisOptions;
  permits: number;
  callers: number;
}
export type RoomMessage = { type: 'ready' } | { type: 'done'; served: number; most: number; lost: number; rss: number };

const { connection, permits, callers } = JSON.parse(process.argv[2]!) as RoomArgs;
const redis = new Redis(connection);
const locks = new Locks(redisStore({ options: connection }));
const semaphore = locks.semaphore('room:lock', { permits });
const options = { keyTimeout: 20_000, waitTimeout: Infinity, retryInterval: 30_000 };
let served = 0;
let most = 0;
let lost = 0;
locks.on('lost', () => void lost++);

async function visit(token: number | null): Promise<void> {
  const [[, inside]] = (await redis.multi().incr('inside').rpush('history', `in ${token}`).exec()) as [[null, number], unknown];
  most = Math.max(most, inside);
  await pause(1);
  await redis.multi().decr('inside').rpush('history', `out ${token}`).exec();
  served++;
}

process.once('message', () => {
  const calls = Array.from({ length: callers }, () => semaphore.using((lease) => visit(lease.fencingToken), options));
  void Promise.all(calls).then(async () => {
    const { rss } = process.memoryUsage();
    await locks.close();
    redis.disconnect();
    tellParent({ type: 'done', served, most, lost, rss });
    process.disconnect();
  });
});
await Promise.all([redis.ping(), locks.acquire('warm-up').then((lease) => lease.release())]);
tellParent({ type: 'ready' });
