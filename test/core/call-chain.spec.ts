import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { GarbageCount } from '../contract/garbage.js';

describe('what a call chain has released', () => {
  const locks = new Locks(memoryStore(), { logger: false });
  afterAll(() => locks.close());

  it.each([
    ['a key', (index: number) => locks.mutex(`key:${index}`)],
    ['several keys', (index: number) => locks.multiLock([`key:${index}`, `other:${index}`])],
  ])('is kept by no timer that was set under %s (G7)', async (_what, lockOf) => {
    const garbage = new GarbageCount();
    const timers: NodeJS.Timeout[] = [];
    for (let index = 0; index < 200; index++) {
      await lockOf(index).using(async (lease) => {
        garbage.add(lease);
        timers.push(setTimeout(() => undefined, 60_000));
      });
    }
    // Some of the last ones are still on the way.
    expect(await garbage.reachable()).toBeLessThan(20);
    timers.forEach((timer) => clearTimeout(timer));
  });
});
