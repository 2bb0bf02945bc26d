// Adds to a counter that nothing guards but the lock, if it is told to use it: reads, pauses, writes.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';

export interface CounterArgs {
  connection: RedisOptions;
  increments: number;
  callers: number;
  guarded: boolean;
}
export type CounterMessage = { type: 'ready' } | { type: 'done'; waits: number };

const { connection, increments, callers, guarded } = JSON.parse(process.argv[2]!) as CounterArgs;
const counter = new Redis(connection);
const locks = new Locks(redisStore({ options: connection }));
let left = increments;
let waits = 0;
// One request takes a free key; what took more, or none, was waited for.
locks.on('acquired', ({ attempts }) => void (waits += attempts === 1 ? 0 : 1));

async function increment(token: number | null): Promise<void> {
  const [, read] = (await counter.pipeline().rpush('history', `in ${token}`).get('counter').exec())!;
  for (let turns = Math.random() * 4; turns > 1; turns--) await nextTurn();
  await counter
    .pipeline()
    .set('counter', Number(read![1]) + 1)
    .rpush('history', `out ${token}`)
    .exec();
}

async function call(): Promise<void> {
  while (left-- > 0) {
    if (guarded)
      await locks.using('count', (lease) => increment(lease.fencingToken), { keyTimeout: 10_000, retryCount: 0, retryInterval: 4 });
    else await increment(null);
  }
}

process.once('message', () => {
  void Promise.all(Array.from({ length: callers }, call)).then(async () => {
    await locks.close();
    counter.disconnect();
    tellParent({ type: 'done', waits });
    process.disconnect();
  });
});
await Promise.all([counter.ping(), locks.acquire('warm-up', { retryCount: 0 }).then((lease) => lease.release())]);
tellParent({ type: 'ready' });
