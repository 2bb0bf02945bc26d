import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.js';
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

/** By requests alone: nobody answers an offer but the test. */
describe('the waiters of a process that left an offer unanswered', () => {
  const setting = useRedis();

  /**
   * Behind a holder `a1`, `a2`, `a3` of one process and `b1` of another one, whose inboxes are open; then `a1` is offered the key.
   *
   * @param ttl milliseconds that the offer lasts.
   */
  async function offered(ttl = 50) {
    const stores = Array.from({ length: 3 }, () => setting.own().store);
    const [holder, a, b] = stores.map(({ mutex }) => mutex);
    for (const driver of [a!, b!]) await driver.wakeUps!.open(() => undefined);
    const ask = (driver: typeof a, name: string, lease = ttl) =>
      driver!.acquire({ key: KEY, owner: `app@host:1:${name}`, ttl: lease, tokens: 1, queue: true });
    const stateOf = async (driver: typeof a, name: string) => (await driver!.check({ key: KEY, owner: `app@host:1:${name}` })).state;
    const isFree = () => eventually(async () => (await setting.redis.exists(KEY)) === 0);
    await ask(holder, 'holder', 60_000);
    for (const [driver, name] of [
      [a, 'a1'],
      [a, 'a2'],
      [a, 'a3'],
      [b, 'b1'],
    ] as const)
      await ask(driver, name);
    await holder!.release({ key: KEY, owner: 'app@host:1:holder', keepFor: 0 });
    return { a, b, ask, stateOf, isFree };
  }

  it('lose their places when another process asks (G8)', async () => {
    const { a, b, ask, stateOf, isFree } = await offered();
    await isFree();
    expect(await ask(b, 'b1', 60_000)).toMatchObject({ granted: true });
    for (const name of ['a1', 'a2', 'a3']) expect(await stateOf(a, name)).toBe('taken');
  });

  it('keep them where that process asks: it is there (G8)', async () => {
    const { a, ask, stateOf, isFree } = await offered();
    await isFree();
    expect(await ask(a, 'a2', 60_000)).toMatchObject({ granted: true });
    expect(await stateOf(a, 'a3')).toBe('queued');
  });

  it('keep them where the offer was answered, and the lease ran out after that (G8)', async () => {
    const { a, b, ask, stateOf, isFree } = await offered(1_000);
    expect(await ask(a, 'a1', 1_000)).toMatchObject({ granted: true });
    await isFree();
    expect(await ask(b, 'b1', 60_000)).toMatchObject({ granted: false, holder: 'app@host:1:a2' });
    expect(await stateOf(a, 'a3')).toBe('queued');
  });
});
