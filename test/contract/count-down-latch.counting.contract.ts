import { type LatchChange, LockConfigError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { latchOpener, type LatchMisbehaviour } from './open-latches.js';
import type { MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { outage } from './store-failures.js';

/** The first so many replies of each verb are lost, of what the store has done. */
function losing(times: number, sent: LatchChange[] = []): LatchMisbehaviour {
  const lost = { trySetCount: 0, countDown: 0 };
  return (real) => ({
    async trySetCount(change) {
      sent.push(change);
      const reply = await real.trySetCount(change);
      if (lost.trySetCount++ < times) throw outage();
      return reply;
    },
    async countDown(change) {
      sent.push(change);
      const reply = await real.countDown(change);
      if (lost.countDown++ < times) throw outage();
      return reply;
    },
  });
}

export function latchCountingContract(makeStore: MakeStore): void {
  const { open, newKey } = latchOpener(makeStore);
  const patient = { waitTimeout: 20_000, retryInterval: 5 };
  let key: string;
  beforeEach(() => (key = newKey()));
  const latchOf = (options?: Parameters<typeof open>[0]) => open(options).countDownLatch(key);

  describe('a count', () => {
    it('is set where there is no latch or it is 0, and counted down to 0, for all who share the store', async () => {
      const [one, other] = [latchOf(), latchOf()];
      expect(await one.getCount()).toBe(0);
      expect(await one.trySetCount(2)).toBe(true);
      expect(await other.trySetCount(5)).toBe(false);
      expect(await other.getCount()).toBe(2);
      expect(await other.countDown()).toBe(1);
      expect(await one.trySetCount(5)).toBe(false);
      expect(await one.countDown()).toBe(0);
      expect(await one.countDown()).toBe(0);
      expect(await other.getCount()).toBe(0);
      expect(await other.trySetCount(1)).toBe(true);
      expect(await one.getCount()).toBe(1);
    });

    it('is counted down once by each of many, who all see another rest', async () => {
      const latches = [latchOf(), latchOf(), latchOf()];
      await latches[0]!.trySetCount(300);
      const rests = await Promise.all(Array.from({ length: 300 }, (_, index) => latches[index % 3]!.countDown()));
      expect(rests.sort((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, rest) => rest));
    });

    it('has a key of the namespace', async () => {
      const locks = open({ namespace: `${key}:` });
      expect(locks.countDownLatch('latch').key).toBe(`${key}:latch`);
      await locks.countDownLatch('latch').trySetCount(3);
      expect(await open().countDownLatch(`${key}:latch`).getCount()).toBe(3);
    });
  });

  it.each([
    ['a count that is not whole', () => latchOf().trySetCount(1.5), '"?the count'],
    ['a count below 0', () => latchOf().trySetCount(-1), 'the count'],
    ['no count', () => latchOf().trySetCount(undefined as never), 'the count'],
    ['an option that a latch has not', () => latchOf().countDown({ keyTimeout: 1_000 } as object), '"keyTimeout"'],
    ['a wrong patience', () => latchOf().await({ waitTimeout: -1 }), '"waitTimeout"'],
    ['a wrong signal', () => latchOf().getCount({ signal: {} as AbortSignal }), '"signal"'],
    ['a time to live of 0', async () => open().countDownLatch(key, { timeToLive: 0 }), '"timeToLive"'],
    ['a time to live without end', async () => open().countDownLatch(key, { timeToLive: Infinity }), '"timeToLive"'],
    ['another option', async () => open().countDownLatch(key, { count: 3 } as object), '"count"'],
    ['no key', async () => open().countDownLatch(''), 'key'],
  ])('refuses %s', async (_what, call, named) => {
    const error = await rejection(call());
    expect(error).toBeInstanceOf(LockConfigError);
    expect((error as Error).message).toMatch(new RegExp(named));
  });

  describe('G6 a change whose reply is lost is repeated, and made once', () => {
    it.each([1, 3])('a count, with %d replies lost', async (times) => {
      await latchOf().trySetCount(5);
      const sent: LatchChange[] = [];
      expect(await latchOf({ misbehaving: losing(times, sent) }).countDown(patient)).toBe(4);
      expect(sent).toHaveLength(times + 1);
      expect(await latchOf().getCount()).toBe(4);
    });

    it('a set, which answers true though the latch is there', async () => {
      const latch = latchOf({ misbehaving: losing(2) });
      expect(await latch.trySetCount(3, patient)).toBe(true);
      expect(await latch.getCount()).toBe(3);
    });

    it('many at a time, of some of which it is the request that is lost, and one after the other', async () => {
      let tries = 0;
      const latch = latchOf({
        misbehaving: (real) => ({
          async countDown(change) {
            const isLost = ++tries <= 30;
            if (isLost && tries % 2 === 1) throw outage();
            const reply = await real.countDown(change);
            if (isLost) throw outage();
            return reply;
          },
        }),
      });
      await latchOf().trySetCount(100);
      await Promise.all(Array.from({ length: 40 }, () => latch.countDown(patient)));
      for (let done = 0; done < 10; done++) await latch.countDown(patient);
      expect(await latchOf().getCount()).toBe(50);
    });

    it('of which a copy comes late, when all is over', async () => {
      const sent: LatchChange[] = [];
      const locks = open({ misbehaving: losing(1, sent) });
      const latch = locks.countDownLatch(key);
      await latch.trySetCount(2, patient);
      for (let done = 0; done < 3; done++) await latch.countDown(patient);
      await latch.trySetCount(7, patient);
      for (const change of sent.map((each) => ({ ...each }))) {
        if ('count' in change) await locks.store.countDownLatch!.trySetCount(change as LatchChange & { count: number });
        else await locks.store.countDownLatch!.countDown(change);
      }
      expect(await latchOf().getCount()).toBe(7);
    });

    it('and not by a repeat so late that the store may have forgotten it', async () => {
      let tries = 0;
      const locks = open({ misbehaving: () => ({ countDown: () => (tries++, Promise.reject(outage())) }) });
      const start = performance.now();
      const latch = locks.countDownLatch(key, { timeToLive: 2_000 });
      expect(await rejection(latch.countDown({ waitTimeout: Infinity, retryInterval: 5 }))).toMatchObject({ name: 'StoreError' });
      expect(tries).toBeGreaterThan(2);
      expect(performance.now() - start).toBeGreaterThanOrEqual(990);
      expect(performance.now() - start).toBeLessThan(2_000);
    });
  });

  it('is forgotten when its time to live is over, done or not', async () => {
    const latch = open().countDownLatch(key, { timeToLive: 150 });
    expect(await latch.trySetCount(5)).toBe(true);
    const start = performance.now();
    await eventually(() => latch.trySetCount(1), { every: 5 });
    expect(performance.now() - start).toBeGreaterThan(100);
    await latch.countDown();
    await eventually(async () => (await open().store.countDownLatch!.look({ key, owner: '', queue: false })) === undefined);
  });
}
