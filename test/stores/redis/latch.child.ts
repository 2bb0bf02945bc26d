// Waits for one latch, and counts another one down again and again: at `said` is how often it was told so.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, type LatchCallOptions } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeOver } from '../../support/redis-clients.js';

export interface LatchArgs {
  connection: RedisOptions;
  /** key of the latch that it waits for */
  waits: string;
  /** key of the one that it counts down */
  counts: string;
  options: LatchCallOptions;
}

const { connection, waits, counts, options } = JSON.parse(process.argv[2]!) as LatchArgs;
const locks = new Locks(redisStore(storeOver({ options: connection })));
const redis = new Redis(connection);

void locks.countDownLatch(waits).await(options);
for (;;) {
  await locks.countDownLatch(counts).countDown();
  await redis.incr('said');
}
