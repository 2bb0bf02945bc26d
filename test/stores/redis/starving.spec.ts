import type { Lease, Locks } from 'nestjs-distributed-lock/core';
import { useRedis } from './setting.js';
import { AT_ONCE, killSubscribers, queued, turnOf, woken } from './waiting.js';

const KEY = 'order:42';

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
