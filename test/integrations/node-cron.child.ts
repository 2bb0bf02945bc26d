// A process with a task of node-cron for every second, whose wall clock is wrong. What becomes of each scheduled time is written to a list at Redis.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { TaskContext } from 'node-cron';
import { tellParent } from '../support/child.js';
import { scheduleDigest } from './node-cron-tasks.js';

const { connection, ahead } = JSON.parse(process.argv[2]!) as { connection: RedisOptions; ahead: number };
const redis = new Redis(connection);
const told = (word: string) => (context: TaskContext) => redis.rpush('told', `${word} ${context.date.toISOString()}`).then(() => undefined);

const RightDate = Date;
globalThis.Date = class extends RightDate {
  constructor(...args: [] | [number]) {
    super(...(args.length === 0 ? ([RightDate.now() + ahead] as const) : args));
  }
  static override now(): number {
    return RightDate.now() + ahead;
  }
} as DateConstructor;

const locks = new Locks(redisStore({ options: connection, requestTimeout: 5_000 }), { namespace: 'shop:' });
const task = scheduleDigest(locks, told('run'));
task.on('execution:skipped', ({ reason, ...context }) => told(reason!)(context));
tellParent({ type: 'ready' });
