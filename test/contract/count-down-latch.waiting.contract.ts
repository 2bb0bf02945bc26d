import { type LatchLook, LockLostError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { latchOpener, type LatchMisbehaviour } from './open-latches.js';
import type { MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { pause, signalAfter } from '../support/time.js';

/** Between two looks of its own a waiter lets a minute pass: only a wake-up explains an end that comes soon. */
const woken = { waitTimeout: 120_000, retryInterval: 60_000 };
const AT_ONCE = 1_000;

/** Wake-ups that are lost. */
const deaf: LatchMisbehaviour = ({ wakeUps }) => ({
  wakeUps: {
    get isOpen() {
      return wakeUps!.isOpen;
    },
    open: (warn) => wakeUps!.open(warn),
    listen: () => () => undefined,
  },
});

export function latchWaitingContract(makeStore: MakeStore, waitersOf: (key: string) => Promise<string[]> | string[]): void {
  const { open, newKey } = latchOpener(makeStore);
  let key: string;
  beforeEach(() => (key = newKey()));
  const latchOf = (options?: Parameters<typeof open>[0]) => open(options).countDownLatch(key);
  const noted = (count: number) => eventually(async () => (await waitersOf(key)).length === count, { within: 10_000 });

  /** Counts down, and says how long the waiters took from then on. */
  async function timeToEnd(waiting: Promise<unknown>[], countDown: () => Promise<unknown> = () => latchOf().countDown()): Promise<number> {
    const start = performance.now();
    await countDown();
    await Promise.all(waiting);
    return performance.now() - start;
  }

  describe('G8 one who waits', () => {
    it('goes on at once, by one look, where there is no latch, or it is counted down', async () => {
      const looks: LatchLook[] = [];
      const latch = latchOf({ misbehaving: (real) => ({ look: (look) => (looks.push(look), real.look(look)) }) });
      await latch.await(woken);
      await latch.trySetCount(1);
      await latch.countDown();
      await latch.await({ waitTimeout: 0 });
      expect(looks).toHaveLength(2);
    });

    it('goes on at once when the last one counts down, not before, and so do all others', async () => {
      const latches = [latchOf(), latchOf(), latchOf()];
      await latches[0]!.trySetCount(2);
      const ended = jest.fn();
      const waiting = latches.flatMap((latch) => [latch.await(woken).then(ended), latch.await(woken).then(ended)]);
      await noted(3);
      await latches[1]!.countDown();
      await pause(50);
      expect(ended).not.toHaveBeenCalled();
      expect(await timeToEnd(waiting, () => latches[2]!.countDown())).toBeLessThan(AT_ONCE);
    });

    it('by the thousand in one process costs a few requests, not thousands', async () => {
      let looks = 0;
      const latch = latchOf({ misbehaving: (real) => ({ look: (look) => (looks++, real.look(look)) }) });
      await latch.trySetCount(1);
      const waiting = Array.from({ length: 1_000 }, () => latch.await(woken));
      await noted(1);
      expect(await timeToEnd(waiting)).toBeLessThan(AT_ONCE);
      expect(looks).toBeLessThan(10);
    });

    it('and comes while others wait is not answered by what they have heard before', async () => {
      const latch = latchOf({ misbehaving: deaf });
      await latch.trySetCount(1);
      const early = latch.await({ ...woken, signal: signalAfter(10_000) });
      await noted(1);
      await latchOf().countDown();
      // Nobody wakes them, and the next look of the first one is a minute away.
      expect(await timeToEnd([early], () => latch.await(woken))).toBeLessThan(AT_ONCE);
    });

    it.each([
      ['whose wake-up is lost', deaf],
      ['that cannot be woken', () => ({ wakeUps: undefined })],
    ])('%s goes on within two retryIntervals', async (_who, misbehaving) => {
      const latch = latchOf({ misbehaving });
      await latch.trySetCount(1);
      const waiting = [latch.await({ ...woken, retryInterval: 250 }), latch.await(woken)];
      await pause(600);
      expect(await timeToEnd(waiting)).toBeLessThan(2 * 250 + AT_ONCE);
    });

    it('and misses all of it, until the latch has been set anew, goes on too', async () => {
      const latch = latchOf({ misbehaving: deaf });
      await latch.trySetCount(1);
      const waiting = latch.await({ ...woken, retryInterval: 200 });
      await noted(1);
      const late = latchOf();
      await late.countDown();
      expect(await late.trySetCount(5)).toBe(true);
      await waiting;
      expect(await late.getCount()).toBe(5);
      await noted(0);
    });

    it('and came for the next round waits on when it is the last one that is over', async () => {
      const latch = latchOf({ misbehaving: deaf });
      await latch.trySetCount(1);
      const first = latch.await({ ...woken, retryInterval: 200 });
      await noted(1);
      await latch.countDown();
      await latch.trySetCount(1);
      const ended = jest.fn();
      const second = latch.await({ ...woken, retryInterval: 200 }).then(ended);
      await first;
      await pause(500);
      expect(ended).not.toHaveBeenCalled();
      await latch.countDown();
      await second;
    });
  });

  describe('a latch that expires before it is counted down', () => {
    const short = (timeToLive: number, misbehaving?: LatchMisbehaviour) =>
      open(misbehaving && { misbehaving }).countDownLatch(key, { timeToLive });

    it('is lost to those who wait, as soon as it has', async () => {
      const latch = short(600);
      await latch.trySetCount(2);
      const waiting = [rejection(latch.await(woken)), rejection(short(600).await(woken))];
      await noted(2);
      const start = performance.now();
      await latch.countDown();
      for (const error of await Promise.all(waiting)) {
        expect(error).toBeInstanceOf(LockLostError);
        expect(error).toMatchObject({ code: 'LOCK_LOST', key, message: expect.stringContaining('expired') });
      }
      // The last count made it live on.
      expect(performance.now() - start).toBeGreaterThanOrEqual(590);
      expect(performance.now() - start).toBeLessThan(600 + AT_ONCE);
    });

    it('is lost also to one who finds another latch in its place, counted down or not', async () => {
      // The look that would find it gone comes late: another one has been set by then.
      const late: LatchMisbehaviour = (real) => ({
        ...deaf(real),
        look: async (look) => {
          const state = await real.look(look);
          return state && { ...state, remaining: -1 };
        },
      });
      for (const rest of [3, 0]) {
        const latch = short(1_000, late);
        await latch.trySetCount(2);
        const waiting = rejection(latch.await({ ...woken, retryInterval: 250 }));
        await noted(1);
        await eventually(() => latchOf().trySetCount(rest), { every: 1 });
        expect(await waiting).toBeInstanceOf(LockLostError);
        while ((await latchOf().countDown()) > 0);
        key = newKey();
      }
    });

    it('lets those go on who came when it was gone', async () => {
      await short(50).trySetCount(2);
      await eventually(async () => (await latchOf().getCount()) === 0);
      await latchOf().await({ waitTimeout: 0 });
    });
  });
}
