// Works with other processes on what nothing but a lock guards, and reports what it saw.
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { type Lease, Locks, type ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeOver, unreferenced } from '../../support/redis-clients.js';
import { tellParent } from '../../support/child.js';

export interface TogetherArgs {
  connection: RedisOptions;
  job: 'record' | 'room' | 'accounts';
  /** At a time, and calls of the whole process. */
  callers: number;
  calls: number;
  keyTimeout?: number;
  /** Of the record: every so many calls is a write. */
  policy?: ReadWritePolicy;
  writeEvery?: number;
  /** Of the room. */
  permits?: number;
}
export type TogetherMessage =
  { type: 'ready' } | { type: 'done'; wrong: number; lost: number; served: number; most: number; rss: number; error?: string };

const ACCOUNTS = ['anna', 'ben', 'cleo', 'dora', 'emil', 'fritz'];

type Replies = [[null, unknown], [null, unknown], [null, unknown]];

async function work({
  connection,
  job,
  callers,
  calls,
  keyTimeout = 60_000,
  policy,
  writeEvery = 1,
  permits = 1,
}: TogetherArgs): Promise<void> {
  const redis = new Redis(connection);
  const locks = new Locks(redisStore(storeOver({ options: connection, requestTimeout: 10_000 }, unreferenced)));
  const options = { keyTimeout, waitTimeout: 600_000, retryInterval: 5_000 };
  /** `wrong`: what a guard should keep from happening. `most`: inside at a time. */
  const found = { wrong: 0, lost: 0, served: 0, most: 0 };
  let lastToken = 0;
  locks.on('lost', () => void found.lost++);

  /** A token that is smaller than one that this process has seen; a reader's may be the same. */
  function look(token: number, mayBeSame = false): void {
    if (token < lastToken || (token === lastToken && !mayBeSame)) found.wrong++;
    lastToken = token;
  }

  async function read({ fencingToken }: Lease): Promise<void> {
    look(fencingToken!, true);
    found.most = Math.max(found.most, await redis.incr('readers'));
    const one = await redis.hget('record', 'one');
    await nextTurn();
    const [[, two], [, writers]] = (await redis.pipeline().hget('record', 'two').get('writers').decr('readers').exec()) as Replies;
    if (one !== two || Number(writers) > 0) found.wrong++;
  }

  async function write({ fencingToken }: Lease): Promise<void> {
    look(fencingToken!);
    const [[, writers], [, readers], [, one]] = (await redis
      .pipeline()
      .incr('writers')
      .get('readers')
      .hget('record', 'one')
      .exec()) as Replies;
    if (Number(writers) > 1 || Number(readers) > 0) found.wrong++;
    const next = Number(one) + 1;
    await redis.hset('record', 'one', next);
    await nextTurn();
    await redis.pipeline().hset('record', 'two', next).decr('writers').exec();
  }

  async function visit({ fencingToken }: Lease): Promise<void> {
    const [[, inside]] = (await redis.multi().incr('inside').rpush('history', `in ${fencingToken}`).exec()) as unknown as [[null, number]];
    found.most = Math.max(found.most, inside);
    await pause(1);
    await redis.multi().decr('inside').rpush('history', `out ${fencingToken}`).exec();
  }

  /** Reads all, pauses, writes all. What was moved the server adds up by itself, right whoever comes between. */
  async function transfer([from = '', ...to]: readonly string[]): Promise<void> {
    const balances = (await redis.mget(from, ...to)).map(Number);
    for (let turns = Math.random() * 4; turns > 1; turns--) await nextTurn();
    const writing = redis.multi();
    for (const [index, account] of [from, ...to].entries()) {
      const change = index === 0 ? -to.length : 1;
      writing.set(account, balances[index]! + change).incrby(`moved:${account}`, change);
    }
    await writing.exec();
  }

  async function once(index: number): Promise<void> {
    if (job === 'room') await locks.semaphore('room', { permits }).using(visit, options);
    else if (job === 'record') {
      const { read: reading, write: writing } = locks.readWriteLock('record:lock', { policy });
      await (index % writeEvery === 0 ? writing.using(write, options) : reading.using(read, options));
    } else {
      const some = ACCOUNTS.map((account) => ({ account, place: Math.random() })).sort((a, b) => a.place - b.place);
      const accounts = some.slice(0, 2 + Math.floor(Math.random() * 3)).map(({ account }) => account);
      await locks.multiLock(accounts.map((account) => `lock:${account}`)).using(() => transfer(accounts), options);
    }
    found.served++;
  }

  let left = calls;
  const call = async () => {
    while (left > 0) await once(--left);
  };
  await locks.acquire('warm-up', { retryCount: 0 }).then((lease) => lease.release());
  const error = await Promise.all(Array.from({ length: callers }, call)).then(
    () => undefined,
    (reason: Error) => reason.message,
  );
  const { rss } = process.memoryUsage();
  await locks.close();
  redis.disconnect();
  tellParent({ type: 'done', ...found, rss, error });
}

process.on('message', (job: TogetherArgs) => void work(job));
tellParent({ type: 'ready' });
