import '../support/virtual-time.js';
import { type Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { long, type Setting, setting } from './setting.js';
import { SharedCounter } from '../support/shared-counter.js';

export function multiLockTiesContract({ open, newKey, isFree: isFreeHere }: Setting): void {
  describe('one key at two stores', () => {
    const another = memoryStore();
    const { open: openOther, isFree: isFreeThere } = setting(() => another);
    let key: string;
    let [here, there]: Locks[] = [];
    beforeEach(() => {
      key = newKey();
      [here, there] = [open({ defaults: long }), openOther({ defaults: long })];
    });
    const both = (first = here!, second = there!) => first.multiLock([first.mutex(key), second.mutex(key)]);

    it('is taken at both, or at none', async () => {
      const lease = await both().acquire();
      expect([await isFreeHere(key), await isFreeThere(key)]).toEqual([false, false]);
      expect(await lease.release()).toBe(true);
      const holder = await openOther().acquire(key, long);
      expect(await both().tryAcquire()).toBeNull();
      await eventually(() => isFreeHere(key));
      await holder.release();
    });

    it('is taken by several who name the stores in the same order', async () => {
      const counter = new SharedCounter();
      const work = async () => {
        const lock = both(open(), openOther());
        for (let round = 0; round < 10; round++) await lock.using(() => counter.increment(), { waitTimeout: 20_000, retryInterval: 20 });
      };
      await Promise.all([0, 1, 2, 3].map(work));
      expect(counter).toMatchObject({ value: 40, overlaps: 0 });
    });

    it('is waited for in the order of the list: the first store keeps it meanwhile', async () => {
      const holder = await openOther().acquire(key, long);
      const waiting = both().acquire({ waitTimeout: Infinity });
      await eventually(async () => expect(await isFreeHere(key)).toBe(false));
      await holder.release();
      const lease = await waiting;
      lease.assertHeld();
      await lease.release();
    });
  });
}
