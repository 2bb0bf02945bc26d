import { setTimeout as pause } from 'node:timers/promises';
import type { Lease, Locks, ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { AT_ONCE, killSubscribers, queued, turnOf, woken } from './waiting.js';

const KEY = 'order:42';
const LOOPS = 8;
const HOLD = 20;

describe('under an endless stream', () => {
  const setting = useRedis();

  /** Loops over two stores that always hold or want that side; each of their turns is counted. */
  async function stream(side: 'read' | 'write', policy: ReadWritePolicy) {
    const stores = [setting.own(), setting.own()];
    const turns = { count: 0 };
    let isRunning = true;
    const loop = async (locks: Locks) => {
      const lock = locks.readWriteLock(KEY, { policy })[side];
      while (isRunning) await lock.using(() => pause(Math.random() * HOLD).then(() => void turns.count++), woken);
    };
    /** Takes the next one before it gives the last one back. */
    const handOverHand = async (locks: Locks) => {
      let lease = await locks.readWriteLock(KEY, { policy }).read.acquire(woken);
      for (; isRunning; await pause(5)) {
        const next = await locks.readWriteLock(KEY, { policy }).read.acquire(woken);
        await lease.release();
        lease = next;
      }
      await lease.release();
    };
    const loops = Array.from({ length: LOOPS }, (_, n) => loop(stores[n % 2]!));
    if (side === 'read' && policy === 'readers') loops.push(handOverHand(stores[0]!));
    const end = async () => {
      isRunning = false;
      await Promise.all(loops);
    };
    setting.finally(end);
    await eventually(() => turns.count > 3 * LOOPS);
    return { turns, end };
  }
  const lockOf = (side: 'read' | 'write', policy: ReadWritePolicy) => setting.own().readWriteLock(KEY, { policy })[side];
  const others = { read: 'write', write: 'read' } as const;

  it.each([
    ['read', 'fair'],
    ['write', 'fair'],
    ['read', 'writers'],
    ['write', 'readers'],
  ] as const)('of %s locks the other side gets in each time, before any of them has had two turns more (%s)', async (side, policy) => {
    const { turns } = await stream(side, policy);
    const other = lockOf(others[side], policy);
    await (await other.acquire(woken)).release();
    for (let round = 0; round < 10; round++) {
      const waiting = other.acquire({ ...woken, fair: true });
      // In its place, or in already.
      await eventually(async () => (await setting.redis.zcard(`{${KEY}}:queue`)) > 0, { every: 1 });
      const before = turns.count;
      const lease = await waiting;
      // Those who are in, those whose turn came before, and those whom the test looks at too late.
      expect(turns.count - before).toBeLessThanOrEqual(2 * LOOPS);
      await lease.release();
    }
  });

  it.each([
    ['read', 'readers'],
    ['write', 'writers'],
  ] as const)('of %s locks the other side waits for its end, where it should: %s first', async (side, policy) => {
    const { turns, end } = await stream(side, policy);
    const other = turnOf(lockOf(others[side], policy).acquire(woken));
    let isIn = false;
    void other.then(() => (isIn = true));
    const before = turns.count;
    await eventually(() => turns.count > before + 20 * LOOPS, { within: 20_000 });
    expect(isIn).toBe(false);
    await end();
    const start = performance.now();
    const { lease, at } = await other;
    expect(at - start).toBeLessThan(AT_ONCE);
    await lease.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});

describe('a wake-up that is lost, of those who share a key', () => {
  const setting = useRedis();

  it.each<
    [
      string,
      (locks: Locks) => { acquire(options: object): Promise<Lease> },
      (locks: Locks) => { acquire(options: object): Promise<Lease> },
      number,
    ]
  >([
    ['readers behind a writer', (locks) => locks.readWriteLock(KEY).write, (locks) => locks.readWriteLock(KEY).read, 3],
    ['a writer behind a reader', (locks) => locks.readWriteLock(KEY).read, (locks) => locks.readWriteLock(KEY).write, 1],
    [
      'those who want permits',
      (locks) => locks.semaphore(KEY, { permits: 3, count: 3 }),
      (locks) => locks.semaphore(KEY, { permits: 3 }),
      3,
    ],
  ])('because the inboxes break with the release, costs no more than the reconnection: %s (G8)', async (_who, first, then, count) => {
    const stores = Array.from({ length: count }, () => setting.own());
    for (let round = 0; round < 5; round++) {
      const holder = await first(setting.own()).acquire(woken);
      const turns = stores.map((locks) => turnOf(then(locks).acquire(woken)));
      await queued(setting, KEY, count);
      const start = performance.now();
      await Promise.all(round % 2 ? [killSubscribers(setting), holder.release()] : [holder.release(), killSubscribers(setting)]);
      for (const { lease, at } of await Promise.all(turns)) {
        expect(at - start).toBeLessThan(AT_ONCE);
        await lease.release();
      }
    }
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
