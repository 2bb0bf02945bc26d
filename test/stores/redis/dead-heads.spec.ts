import { setTimeout as pause } from 'node:timers/promises';
import { SLACK, useRedis } from './setting.js';
import { AT_ONCE, lockers, queued, turnOf, woken, wokenChild } from './waiting.js';

const KEY = 'order:42';
const KEY_TIMEOUT = 2_000;
/** How long a waiter that does not answer keeps a key that it is offered. */
const OFFER = 1_000;

describe('a waiter behind others whose process', () => {
  const setting = useRedis();

  /** So many children have their places, in order, and one of ours the one behind them. */
  async function line(count: number, keyTimeout = woken.keyTimeout) {
    const children = await lockers(setting, count + 1);
    const holder = children.pop()!;
    holder.send({ type: 'acquire', key: KEY, options: { ...wokenChild, keyTimeout } });
    await holder.waitFor('granted');
    for (const [index, child] of children.entries()) {
      child.send({ type: 'acquire', key: KEY, options: { ...wokenChild, keyTimeout } });
      await queued(setting, KEY, index + 1);
    }
    const next = turnOf(setting.own().acquire(KEY, { ...woken, keyTimeout }));
    await queued(setting, KEY, count + 1);
    return { holder, children, next };
  }

  it.each([3])('was killed gets the key at once with the release, since nobody listens there (%d of them) (G8)', async (count) => {
    const { holder, children, next } = await line(count);
    await Promise.all(children.map((child) => child.kill()));
    const start = performance.now();
    holder.send({ type: 'release', key: KEY });
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(AT_ONCE);
    await lease.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it.each([3])('was killed, as the holder was, gets the key when the lease has run out (%d of them) (G8)', async (count) => {
    const { holder, children, next } = await line(count, KEY_TIMEOUT);
    const start = performance.now();
    await Promise.all([holder, ...children].map((child) => child.kill()));
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(KEY_TIMEOUT + 1_000 + SLACK);
    await lease.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it.each([3])('hangs gets the key within a second for each, however seldom it looks by itself (%d of them) (G8)', async (count) => {
    const { holder, children, next } = await line(count);
    for (const child of children) child.pause();
    const start = performance.now();
    holder.send({ type: 'release', key: KEY });
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(count * OFFER + SLACK);
    await lease.release();
  });

  it('hangs holds the key while that one wakes up and learns that its turn is over: it does not run (G1, G2)', async () => {
    const { holder, children, next } = await line(1);
    const [hanging] = children;
    hanging!.pause();
    holder.send({ type: 'release', key: KEY });
    const { lease } = await next;
    hanging!.resume();
    // It has seen the offer of a second ago, has asked, and waits again.
    await queued(setting, KEY, 1);
    await expect(hanging!.waitFor('granted', { within: 200 })).rejects.toThrow("no message 'granted'");
    lease.assertHeld();
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    const start = performance.now();
    await lease.release();
    const { token } = await hanging!.waitFor('granted');
    expect(performance.now() - start).toBeLessThan(AT_ONCE);
    expect(token).toBeGreaterThan(lease.fencingToken!);
  });

  it('hangs for less than its offer still gets its turn, once, and no other does meanwhile (G2)', async () => {
    const { holder, children, next } = await line(1);
    const [hanging] = children;
    hanging!.pause();
    holder.send({ type: 'release', key: KEY });
    await holder.waitFor('released');
    await pause(300);
    hanging!.resume();
    const { token, owner } = await hanging!.waitFor('granted');
    expect(await setting.redis.get(KEY)).toBe(owner);
    hanging!.send({ type: 'release', key: KEY });
    const { lease } = await next;
    expect(lease.fencingToken).toBeGreaterThan(token);
    await lease.release();
  });
});
