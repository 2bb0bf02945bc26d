import { eventually } from '../../support/eventually.js';
import type { LockerMessage } from './locker.child.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const KEY = 'counter:1';
const QUEUE = `{${KEY}}:queue`;
const fair = { fair: true, keyTimeout: 10_000, waitTimeout: 60_000 };
/** How long a waiter that is gone keeps a key that it is offered. */
const OFFER = 1_000;

describe('fair: true, across processes', () => {
  const setting = useRedis();

  async function processes(count: number) {
    const children = await Promise.all(
      Array.from({ length: count }, () => setting.fork<LockerMessage>('locker.child.ts', setting.server.connection)),
    );
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
    return children;
  }
  const queued = (count: number) => eventually(async () => (await setting.redis.zcard(QUEUE)) === count);

  it('serves first come, first served, whichever process they are in, and leaves no queue (G7)', async () => {
    const children = await processes(3);
    const holder = await setting.own().acquire(KEY, fair);
    const order = Array.from({ length: 9 }, () => Math.floor(Math.random() * 3));
    for (const [i, process] of order.entries()) {
      children[process]!.send({ type: 'acquire', key: KEY, options: fair });
      await queued(i + 1);
    }
    const owners = (await setting.redis.zrange(QUEUE, '0', '-1')).map((place) => place.split('\n')[0]);
    await holder.release();
    let last = holder.fencingToken!;
    for (const [i, process] of order.entries()) {
      const { owner, token } = await children[process]!.waitFor('granted');
      expect(owner).toBe(owners[i]);
      expect(token).toBeGreaterThan(last);
      last = token;
      children[process]!.send({ type: 'release', key: KEY });
      await children[process]!.waitFor('released');
    }
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('keeps with each place what its call chain holds already, and since when it waits', async () => {
    const holder = await setting.own().acquire(KEY, fair);
    const locks = setting.own();
    const waiting = locks.using('outer', () => locks.using('inner', () => locks.using(KEY, () => undefined, fair), fair), fair);
    await queued(1);
    const [place, since] = await setting.redis.zrange(QUEUE, '0', '-1', 'WITHSCORES');
    const [, , , ...holding] = place!.split('\n');
    expect(holding).toEqual(['inner', 'outer']);
    const [seconds, micros] = await setting.redis.time();
    const age = Number(seconds) * 1e6 + Number(micros) - Number(since);
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(60e6);
    await holder.release();
    await waiting;
  });

  it('serves those who queue before those who do not', async () => {
    const locks = setting.own();
    const holder = await locks.acquire(KEY, fair);
    const waiter = setting.own().acquire(KEY, fair);
    await queued(1);
    const unfair = setting.own().acquire(KEY, { ...fair, fair: false, retryInterval: 1 });
    await holder.release();
    const first = await Promise.race([waiter.then(() => 'fair'), unfair.then(() => 'unfair')]);
    expect(first).toBe('fair');
    await (await waiter).release();
    await (await unfair).release();
  });

  it('is delayed by a second at most for each waiter ahead that was killed, and leaves no queue (G7, G8)', async () => {
    const children = await processes(2);
    const holder = await setting.own().acquire(KEY, fair);
    for (const [i, child] of children.entries()) {
      child.send({ type: 'acquire', key: KEY, options: fair });
      await queued(i + 1);
    }
    const wait = setting.own().acquire(KEY, fair);
    await queued(3);
    await Promise.all(children.map((child) => child.kill()));
    await holder.release();
    const { value, took } = await outcomeOf(wait);
    expect(took).toBeLessThan(children.length * OFFER + SLACK);
    await value!.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('is not held up by a holder that was killed for longer than its keyTimeout (G8)', async () => {
    const [child] = await processes(1);
    child!.send({ type: 'acquire', key: KEY, options: { ...fair, keyTimeout: 1_000 } });
    await child!.waitFor('granted');
    const waits = [setting.own().acquire(KEY, fair)];
    await queued(1);
    waits.push(setting.own().acquire(KEY, fair));
    await queued(2);
    await child!.kill();
    for (const wait of waits) {
      const { value, took } = await outcomeOf(wait);
      expect(took).toBeLessThan(1_000 + 1_000 + SLACK);
      await value!.release();
    }
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('lets a waiter go that gives up: the next one is served in its place at once (G7)', async () => {
    const locks = setting.own();
    const holder = await locks.acquire(KEY, fair);
    const caller = new AbortController();
    const givesUp = outcomeOf(locks.acquire(KEY, { ...fair, signal: caller.signal }));
    await queued(1);
    const impatient = outcomeOf(locks.acquire(KEY, { ...fair, waitTimeout: 100 }));
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

  it('gives the turn of a waiter whose process hangs to the next, and does not give it twice when that wakes up (G2)', async () => {
    const [child] = await processes(1);
    const holder = await setting.own().acquire(KEY, fair);
    child!.send({ type: 'acquire', key: KEY, options: fair });
    await queued(1);
    const next = setting.own().acquire(KEY, fair);
    await queued(2);
    child!.pause();
    await holder.release();
    const lease = await next;
    child!.resume();
    await queued(1);
    lease.assertHeld();
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    await lease.release();
    const { token } = await child!.waitFor('granted');
    expect(token).toBeGreaterThan(lease.fencingToken!);
  });
});
