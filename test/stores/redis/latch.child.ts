// Counts latches down and waits for them as it is told to, and says so.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, type LatchCallOptions } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeOver } from '../../support/redis-clients.js';
import { tellParent } from '../../support/child.js';

export type LatchOrder =
  | { type: 'await'; key: string; options: LatchCallOptions }
  /** `tally`: a key that is incremented after each count. */
  | { type: 'count'; key: string; times: number; timeToLive: number; tally?: string };
export type LatchMessage =
  { type: 'ready' } | { type: 'ended'; key: string } | { type: 'failed'; key: string; error: string } | { type: 'counted'; rest: number };

const connection = JSON.parse(process.argv[2]!) as RedisOptions;
const locks = new Locks(redisStore(storeOver({ options: connection })));
const redis = new Redis({ ...connection, lazyConnect: true });

async function obey(order: LatchOrder): Promise<void> {
  if (order.type === 'await') {
    await locks.countDownLatch(order.key).await(order.options);
    tellParent({ type: 'ended', key: order.key });
  } else {
    const latch = locks.countDownLatch(order.key, { timeToLive: order.timeToLive });
    for (let done = 0; done < order.times; done++) {
      const rest = await latch.countDown();
      if (order.tally !== undefined) await redis.incr(order.tally);
      tellParent({ type: 'counted', rest });
    }
  }
}

process.on('message', (order: LatchOrder) => {
  obey(order).catch((error: Error) => tellParent({ type: 'failed', key: order.key, error: error.name }));
});
tellParent({ type: 'ready' });
