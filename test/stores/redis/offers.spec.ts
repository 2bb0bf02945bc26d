import type { Lock, Locks } from 'nestjs-distributed-lock/core';
import { setTimeout as pause } from 'node:timers/promises';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK, type Kind } from '../../contract/kinds.js';
import { rejection } from '../../contract/rejection.js';
import { eventually } from '../../support/eventually.js';
import { SLACK, useRedis } from './setting.js';
import { AT_ONCE, queued, turnOf, woken } from './waiting.js';

const KEY = 'order:42';
const QUEUE = `{${KEY}}:queue`;
/** How a queue knows a waiter, with the milliseconds that it has to take its offer. */
const placeOf = (kind: Kind, owner: string, inbox: string, offer: number): string => {
  const needs = { mutex: '', 'write lock': '\n1000000000 read/write lock' }[kind.name] ?? '\n1 semaphore';
  return `${owner}\n${inbox}\n${offer}${needs}`;
};

describe.each([MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE])('an offer of a $name', (kind) => {
  const setting = useRedis();
  const lockOf = (locks: Locks, key = KEY): Lock => kind.lockOf(locks, key);

  it('to a process that hangs is known to the next one, which asks when it ends (G8)', async () => {
    const holder = await lockOf(setting.own()).acquire(woken);
    await setting.client().subscribe('hanging');
    await setting.redis.zadd(QUEUE, 1, placeOf(kind, 'hanging', 'hanging', 700));
    const next = turnOf(lockOf(setting.own()).acquire(woken));
    await queued(setting, KEY, 2);
    const start = performance.now();
    await holder.release();
    const { lease, at } = await next;
    expect(at - start).toBeGreaterThanOrEqual(690);
    expect(at - start).toBeLessThan(700 + AT_ONCE);
    await lease.release();
  });

  it('is not made to a process that is gone, though somebody listens to all channels (G8)', async () => {
    await setting.client().psubscribe('*');
    const holder = await lockOf(setting.own()).acquire(woken);
    await setting.redis.zadd(QUEUE, 1, placeOf(kind, 'gone', 'gone', 60_000));
    const next = turnOf(lockOf(setting.own()).acquire(woken));
    await queued(setting, KEY, 2);
    const start = performance.now();
    await holder.release();
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(AT_ONCE);
    await lease.release();
  });

  it('is looked for among a bounded number of waiters at a time, and found all the same (G8)', async () => {
    const holder = await lockOf(setting.own()).acquire(woken);
    const places = Array.from({ length: 20_000 }, (_, i) => [i + 1, placeOf(kind, `gone:${i}`, `gone:${i}`, 1_000)]).flat();
    await setting.redis.zadd(QUEUE, ...places);
    const next = turnOf(lockOf(setting.own()).acquire(woken));
    await queued(setting, KEY, 20_001);
    await setting.redis.config('RESETSTAT');
    const start = performance.now();
    await holder.release();
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(SLACK);
    // Each script looked through a thousand.
    const stats = await setting.redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    expect(calls).toBeGreaterThanOrEqual(20);
    await lease.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  const late = 'to a waiter that had given up before a late request of its own came is given back at once';
  it.each(['', 'shop:'])(`${late} (keyPrefix "%s") (G6, G8)`, async (prefix) => {
    const open = () => setting.own({ ...setting.server.connection, keyPrefix: prefix });
    const places = `${prefix}{${prefix}${KEY}}:queue`;
    const holder = await lockOf(open()).acquire(woken);
    const locks = open();
    const caller = new AbortController();
    const waiting = rejection(lockOf(locks).acquire({ ...woken, signal: caller.signal }));
    await queued(setting, KEY, 1, prefix);
    const [place] = await setting.redis.zrange(places, '0', '0');
    caller.abort();
    await waiting;
    await queued(setting, KEY, 0, prefix);
    // As the server knows it, but that the offer lasts longer than this test.
    await setting.redis.zadd(places, 1, place!.replace('\n1000', '\n60000'));
    const start = performance.now();
    await holder.release();
    await eventually(async () => expect(await setting.keys()).toEqual([`${prefix}{${prefix}${KEY}}:fence`]), { within: AT_ONCE });
    expect(performance.now() - start).toBeLessThan(AT_ONCE);
  });

  it('to a waiter that has had its turn before a late request of its own came is given back at once (G6, G8)', async () => {
    const first = await lockOf(setting.own()).acquire(woken);
    const locks = setting.own();
    const waiting = lockOf(locks).acquire(woken);
    await queued(setting, KEY, 1);
    const [place] = await setting.redis.zrange(QUEUE, '0', '0');
    await first.release();
    await (await waiting).release();
    const holder = await lockOf(setting.own()).acquire(woken);
    await setting.redis.zadd(QUEUE, 1, place!.replace('\n1000', '\n60000'));
    await holder.release();
    await eventually(async () => expect(await setting.keys()).toEqual([`{${KEY}}:fence`]), { within: AT_ONCE });
  });

  it('that is told again to the one who holds the key by it takes nothing away (G2)', async () => {
    const first = await lockOf(setting.own()).acquire(woken);
    const waiting = lockOf(setting.own()).acquire(woken);
    await queued(setting, KEY, 1);
    const [place] = await setting.redis.zrange(QUEUE, '0', '0');
    const [owner, inbox] = place!.split('\n');
    await first.release();
    const lease = await waiting;
    expect(lease.owner).toBe(owner);
    for (const message of [`${owner}\n${KEY}`, `${owner}\n${KEY}\n1`, owner!]) await setting.redis.publish(inbox!, message);
    // One more hand-over over the same inbox: what was said before has been read.
    await pause(100);
    lease.assertHeld();
    expect(await setting.redis.exists(KEY)).toBe(1);
    expect(await lease.release()).toBe(true);
  });

  it('that is confirmed lasts for the keyTimeout, also where that is shorter than the offer', async () => {
    await setting.redis.acl('SETUSER', 'deaf', 'reset', 'on', '>pass', '~*', '+@all', 'resetchannels');
    const deaf = setting.own({ ...setting.server.connection, username: 'deaf', password: 'pass' });
    const holder = await lockOf(setting.own()).acquire(woken);
    const waiting = lockOf(deaf).acquire({ ...woken, keyTimeout: 300, fair: true });
    await queued(setting, KEY, 1);
    await holder.release();
    const lease = await waiting;
    expect(await setting.redis.pttl(KEY)).toBeLessThanOrEqual(300);
    expect(await lease.release()).toBe(true);
  });
});
