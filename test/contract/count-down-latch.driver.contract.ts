import type { Lease } from '../../lib/core/model/lease.js';
import type { LatchDriver } from '../../lib/core/store/latch-driver.js';
import type { Locks } from '../../lib/locks.js';
import { eventually } from '../../lib/testing/store/eventually.js';
import { itInTime } from './in-time.js';
import { latchOpener } from './open-latches.js';
import { type MakeStore, SHORT_LEASE } from './open-locks.js';
import { rejection, timed } from '../support/rejection.js';

/** The promises of every driver of latches to the engine above it. */
export function latchDriverContract(makeStore: MakeStore): void {
  describe('the driver', () => {
    const { open: openLocks, driver: open, newKey } = latchOpener(makeStore);
    let driver: LatchDriver;
    let key: string;
    let last = 0;

    const setUp = () => {
      driver = open();
      key = newKey();
    };
    beforeEach(setUp);

    const next = (line: string) => ({ line, number: ++last });
    const set = (count: number, operation = next('a'), ttl = 20_000) => driver.trySetCount({ key, count, ttl, operation });
    const down = (operation = next('a'), ttl = 20_000) => driver.countDown({ key, ttl, operation });
    const look = (owner = 'a', queue = false) => driver.look({ key, owner, queue });
    const count = async () => (await look())?.count;

    it('knows no latch that was never set, and none by having counted it down', async () => {
      expect(await look()).toBeUndefined();
      expect(await down()).toBe(0);
      expect(await look('a', true)).toBeUndefined();
    });

    it('tells a latch by its count, its id, its round, and how long it lives', async () => {
      expect(await set(2)).toBe(true);
      const first = (await look())!;
      expect(first).toMatchObject({ count: 2, round: 1 });
      expect(first.id).not.toBe('');
      expect(first.remaining).toBeGreaterThan(10_000);
      expect(first.remaining).toBeLessThanOrEqual(20_000);
      await down();
      expect(await look()).toMatchObject({ count: 1, round: 1, id: first.id });
      await down();
      expect(await set(3)).toBe(true);
      expect(await look()).toMatchObject({ count: 3, round: 2, id: first.id });
    });

    const another = async () => {
      await set(1, next('a'), SHORT_LEASE);
      const { id } = (await look())!;
      await eventually(async () => (await look()) === undefined);
      await set(1);
      expect((await look())!.id).not.toBe(id);
    };
    itInTime('gives a latch that is set after another one has expired another id (G6)', setUp, another, SHORT_LEASE);

    describe('G6 knows an operation that is repeated', () => {
      it('a count, with the first answer', async () => {
        await set(3);
        const first = next('a');
        expect(await down(first)).toBe(2);
        expect(await down(next('b'))).toBe(1);
        expect(await down(first)).toBe(2);
        expect(await count()).toBe(1);
      });

      it('a set, with the first answer', async () => {
        const first = next('a');
        expect(await set(2, first)).toBe(true);
        await down(next('b'));
        expect(await set(2, first)).toBe(true);
        expect(await count()).toBe(1);
        expect(await set(2, next('b'))).toBe(false);
      });

      it('also after the latch was set again, which it does not touch', async () => {
        const [setting, counting] = [next('a'), next('b')];
        await set(1, setting);
        await down(counting);
        await set(5, next('c'));
        expect(await down(counting)).toBe(0);
        expect(await set(7, setting)).toBe(true);
        expect(await look()).toMatchObject({ count: 5, round: 2 });
      });

      it('of a count that found the latch counted down, and must not count on the next one', async () => {
        await set(0);
        const late = next('b');
        expect(await down(late)).toBe(0);
        await set(5);
        expect(await down(late)).toBe(0);
        expect(await count()).toBe(5);
      });

      it('that comes after the next one of its line: it was given up, and changes nothing', async () => {
        await set(5, next('b'));
        const late = [next('a'), next('a')];
        expect(await down(next('a'))).toBe(4);
        expect(await down(late[0])).toBe(4);
        await Promise.all([down(next('b')), down(next('c')), down(next('d')), down(next('e'))]);
        expect(await count()).toBe(0);
        expect(await set(3, late[1])).toBe(false);
        expect(await count()).toBe(0);
      });

      it('however many lines there are, and forgets those of which no repeat can come once the latch is set again', async () => {
        await set(100);
        const short = next('short');
        await down(short, 20);
        const operations = Array.from({ length: 99 }, (_, index) => next(`line ${index}`));
        await Promise.all(operations.map((operation) => down(operation)));
        const start = performance.now();
        await eventually(() => performance.now() > start + 30);
        await set(100);
        await Promise.all(operations.map((operation) => down(operation)));
        expect(await count()).toBe(100);
        // A repeat so late is none that the engine sends: it shows that nothing is kept without end.
        await down(short);
        expect(await count()).toBe(99);
      });
    });

    const kinds: [string, (locks: Locks) => Promise<Lease>][] = [
      ['mutex', (locks) => locks.acquire(key, { keyTimeout: 60_000 })],
      ['read/write lock', (locks) => locks.readWriteLock(key).read.acquire({ keyTimeout: 60_000 })],
      ['semaphore', (locks) => locks.semaphore(key, { permits: 3 }).acquire({ keyTimeout: 60_000 })],
    ];
    for (const [kind, acquire] of kinds)
      it(`refuses a key that is in use as a ${kind}, and is refused as one`, async () => {
        const locks = openLocks();
        const lease = await acquire(locks);
        const latch = locks.countDownLatch(key);
        const message = expect.stringMatching(`(?=.*${kind})(?=.*count-down latch)`) as string;
        const refusal = { name: 'LockConfigError', key, message };
        for (const call of [
          () => latch.trySetCount(3),
          () => latch.countDown(),
          () => latch.getCount(),
          () => latch.await({ waitTimeout: Infinity }),
        ])
          expect(await rejection(call())).toMatchObject(refusal);
        expect(await lease.release()).toBe(true);
        await eventually(() => latch.trySetCount(3));
        expect(await rejection(acquire(locks))).toMatchObject(refusal);
        expect(await latch.countDown()).toBe(2);
      });

    describe('lets a latch live', () => {
      it('for its time from each change, and never for less than another one has said', async () => {
        await set(9, next('a'), 20_000);
        await down(next('a'), 60_000);
        expect((await look())!.remaining).toBeGreaterThan(50_000);
        await down(next('a'), 10);
        expect((await look())!.remaining).toBeGreaterThan(50_000);
      });

      it('no longer for a poll or a repeat', async () => {
        const operation = next('a');
        const { elapsed } = await timed(async () => {
          await set(2, next('b'), SHORT_LEASE);
          await down(operation, SHORT_LEASE);
          await eventually(async () => {
            await down(operation, 20_000);
            return (await look('a', true)) === undefined;
          });
        });
        expect(elapsed).toBeGreaterThan(SHORT_LEASE - 5);
      });

      it('and for its time when it is counted down, as done', async () => {
        await set(1);
        await down(next('a'), 200);
        expect(await look()).toMatchObject({ count: 0 });
        expect((await look())!.remaining).toBeGreaterThan(10_000);
      });
    });
  });
}
