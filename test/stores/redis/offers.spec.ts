import type { Lock, Locks } from 'nestjs-distributed-lock/core';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK, type Kind } from '../../contract/kinds.js';
import { rejection } from '../../support/rejection.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { entriesOf, queued, woken } from './waiting.js';

const KEY = 'order:42';
const QUEUE = `{${KEY}}:queue`;
const setting = useRedis();

/** How a queue knows a waiter, with the milliseconds that it has to take its offer. */
const entryOf = (kind: Kind, owner: string, inbox: string, offer: number): string => {
  const needs = { mutex: '', 'write lock': '\n1000000000 read/write lock' }[kind.name] ?? '\n1 semaphore';
  return `${owner}\n${inbox}\n${offer}${needs}`;
};

describe.each([MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE])('an offer of a $name', (kind) => {
  const lockOf = (locks: Locks): Lock => kind.lockOf(locks, KEY);
  const take = () => lockOf(setting.own()).acquire(woken);
  const onlyTheFenceIsLeft = () => eventually(async () => expect(await setting.keys()).toEqual([`{${KEY}}:fence`]));

  it('to a process that hangs is known to the next one, which asks when it ends (G8)', async () => {
    const holder = await take();
    await setting.client().subscribe('hanging');
    await setting.redis.zadd(QUEUE, 1, entryOf(kind, 'hanging', 'hanging', 700));
    const next = take();
    await queued(setting, KEY, 2);
    const start = performance.now();
    await holder.release();
    const lease = await next;
    expect(performance.now() - start).toBeGreaterThanOrEqual(690);
    await lease.release();
  });

  it('to a process that hangs with more waiters than are looked at is known to the last one behind them (G8)', async () => {
    const holder = await take();
    await setting.client().subscribe('hanging');
    const entries = Array.from({ length: 120 }, (_, i) => [i + 1, entryOf(kind, `hanging:${i}`, 'hanging', 10)]).flat();
    await setting.redis.zadd(QUEUE, ...entries);
    const next = take();
    await queued(setting, KEY, 121);
    await holder.release();
    await (await next).release();
    await onlyTheFenceIsLeft();
  });

  it('is not made to a process that is gone, though another client listens to all channels (G8)', async () => {
    await setting.client().psubscribe('*');
    const holder = await take();
    // Its offer would last longer than the test.
    await setting.redis.zadd(QUEUE, 1, entryOf(kind, 'gone', 'gone', 300_000));
    const next = take();
    await queued(setting, KEY, 2);
    await holder.release();
    await (await next).release();
  });

  it('is looked for among a bounded number of waiters at a time, and found all the same (G8)', async () => {
    const holder = await take();
    const entries = Array.from({ length: 5_000 }, (_, i) => [i + 1, entryOf(kind, `gone:${i}`, `gone:${i}`, 1_000)]).flat();
    await setting.redis.zadd(QUEUE, ...entries);
    const next = take();
    await queued(setting, KEY, 5_001);
    await setting.redis.config('RESETSTAT');
    await holder.release();
    const lease = await next;
    // Each script looked through a thousand.
    const stats = await setting.redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    expect(calls).toBeGreaterThanOrEqual(5);
    await lease.release();
    await onlyTheFenceIsLeft();
  });

  it('to a caller that has gone, whose late request queued it again, costs its second and leaves nothing (G6, G7)', async () => {
    const holder = await take();
    const caller = new AbortController();
    const waiting = rejection(lockOf(setting.own()).acquire({ ...woken, signal: caller.signal }));
    await queued(setting, KEY, 1);
    const [entry] = await entriesOf(setting, KEY);
    caller.abort();
    await waiting;
    await queued(setting, KEY, 0);
    await setting.redis.zadd(QUEUE, 1, entry!);
    const next = take();
    await queued(setting, KEY, 2);
    await holder.release();
    await (await next).release();
    await onlyTheFenceIsLeft();
  });

  it('of which the holder is notified once more takes nothing away (G2)', async () => {
    const first = await take();
    const waiting = take();
    await queued(setting, KEY, 1);
    const [owner, inbox] = (await entriesOf(setting, KEY))[0]!.split('\n');
    await first.release();
    const lease = await waiting;
    expect(lease.owner).toBe(owner);
    for (const message of [`${owner}\n${KEY}`, `${owner}\n${KEY}\n1`, owner!]) await setting.redis.publish(inbox!, message);
    await staysTrue(async () => {
      lease.assertHeld();
      return (await setting.redis.exists(KEY)) === 1;
    });
    expect(await lease.release()).toBe(true);
  });
});

describe('a fair waiter', () => {
  const fair = { ...woken, fair: true };

  it('has in its queue entry what its call chain holds already, and since when it waits', async () => {
    const holder = await setting.own().acquire(KEY, fair);
    const locks = setting.own();
    const micros = async () => (await setting.redis.time()).map(Number).reduce((seconds, rest) => seconds * 1e6 + rest);
    const before = await micros();
    const waiting = locks.using('outer', () => locks.using('inner', () => locks.using(KEY, () => undefined, fair), fair), fair);
    await queued(setting, KEY, 1);
    const [entry, score] = await setting.redis.zrange(QUEUE, '0', '-1', 'WITHSCORES');
    const [, , , ...holding] = entry!.split('\n');
    const uuids = await Promise.all(['inner', 'outer'].map(async (key) => (await setting.redis.get(key))!.split(':').at(-1)));
    expect(holding).toEqual([`${uuids[0]} inner`, `${uuids[1]} outer`]);
    const after = await micros();
    expect(Number(score)).toBeGreaterThanOrEqual(before);
    expect(Number(score)).toBeLessThanOrEqual(after);
    await holder.release();
    await waiting;
  });

  it('that gives up lets the next one be served instead (G7)', async () => {
    const locks = setting.own();
    const holder = await locks.acquire(KEY, fair);
    const caller = new AbortController();
    const givesUp = rejection(locks.acquire(KEY, { ...fair, signal: caller.signal }));
    await queued(setting, KEY, 1);
    const impatient = rejection(locks.acquire(KEY, { ...fair, waitTimeout: 500 }));
    const patient = locks.acquire(KEY, fair);
    await impatient;
    caller.abort();
    await givesUp;
    await queued(setting, KEY, 1);
    await holder.release();
    await (await patient).release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
