// Many callers of one process who want one key, and add to a counter that nothing else guards.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeOver, unreferenced } from '../../support/redis-clients.js';
import { tellParent } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';

export interface CrowdArgs {
  connection: RedisOptions;
  name: string;
  key: string;
  callers: number;
  fair?: boolean;
}
export type CrowdMessage = { type: 'ready' } | { type: 'done'; served: number; rss: number; timers: number };

const { connection, name, key, callers, fair = false } = JSON.parse(process.argv[2]!) as CrowdArgs;
const redis = new Redis(connection);
const locks = new Locks(redisStore(storeOver({ options: connection, requestTimeout: 60_000 }, unreferenced)));
let served = 0;

async function section(owner: string, token: number | null): Promise<void> {
  const seen = Number(await redis.get('counter'));
  await redis
    .pipeline()
    .set('counter', seen + 1)
    .rpush('history', `${name} ${token} ${owner}`)
    .exec();
  served++;
}

/** What keeps this process alive yet; `eventually` has one of its own. */
const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length - 1;

process.once('message', () => {
  const options = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 30_000, fair };
  const calls = Array.from({ length: callers }, () => locks.using(key, (lease) => section(lease.owner, lease.fencingToken), options));
  void Promise.all(calls).then(async () => {
    const { rss } = process.memoryUsage();
    await locks.close();
    redis.disconnect();
    // Those of clients that close end with them.
    await eventually(() => timers() === 0).catch(() => undefined);
    tellParent({ type: 'done', served, rss, timers: Math.max(timers(), 0) });
    process.disconnect();
  });
});
await Promise.all([redis.ping(), locks.acquire(`warm-up:${name}`).then((lease) => lease.release())]);
tellParent({ type: 'ready' });
