import { eventually } from '../../support/eventually.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const KEY = 'counter:1';
const QUEUE = `{${KEY}}:queue`;
const fair = { fair: true, keyTimeout: 10_000, waitTimeout: 60_000 };
/** How long a waiter that is gone keeps a key that it is offered. */
const OFFER = 1_000;

describe('fair: true, across processes', () => {
  const setting = useRedis();

  const queued = (count: number) => eventually(async () => (await setting.redis.zcard(QUEUE)) === count);

  it('keeps with each place what its call chain holds already, and since when it waits', async () => {
    const holder = await setting.own().acquire(KEY, fair);
    const locks = setting.own();
    const waiting = locks.using('outer', () => locks.using('inner', () => locks.using(KEY, () => undefined, fair), fair), fair);
    await queued(1);
    const [place, since] = await setting.redis.zrange(QUEUE, '0', '-1', 'WITHSCORES');
    const [, , , ...holding] = place!.split('\n');
    const uuids = await Promise.all(['inner', 'outer'].map(async (key) => (await setting.redis.get(key))!.split(':').at(-1)));
    expect(holding).toEqual([`${uuids[0]} inner`, `${uuids[1]} outer`]);
    const [seconds, micros] = await setting.redis.time();
    const age = Number(seconds) * 1e6 + Number(micros) - Number(since);
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(60e6);
    await holder.release();
    await waiting;
  });

  it('lets a waiter go that gives up: the next one is served in its place at once (G7)', async () => {
    const locks = setting.own();
    const holder = await locks.acquire(KEY, fair);
    const caller = new AbortController();
    const givesUp = outcomeOf(locks.acquire(KEY, { ...fair, signal: caller.signal }));
    await queued(1);
    const impatient = outcomeOf(locks.acquire(KEY, { ...fair, waitTimeout: 1500 }));
    await queued(2);
    const patient = locks.acquire(KEY, fair);
    await queued(3);
    caller.abort();
    await Promise.all([givesUp, impatient]);
    await queued(1);
    await holder.release();
    const { value, took } = await outcomeOf(patient);
    expect(took).toBeLessThan(OFFER + SLACK);
    await value!.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
