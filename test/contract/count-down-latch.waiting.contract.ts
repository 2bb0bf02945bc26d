import { passTime } from '../support/virtual-time.js';
import { getEventListeners } from 'node:events';
import { type LatchDriver, LockAbortedError, type Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { signalAfter } from '../support/time.js';
import { gate } from '../support/gate.js';
import { timersLeft } from './timers-left.js';
import { changing, counting, deaf, failing, outage, silent } from './misbehaviour.js';
import { latchOpener, type LatchMisbehaviour } from './open-latches.js';
import type { MakeStore } from './open-locks.js';
import { rejection, timed } from '../support/rejection.js';
import { patient } from './setting.js';

const { keyTimeout: _none, ...woken } = patient;

/** Waiters of a latch. Where an end comes within seconds, it is by a wake-up: the next poll comes after a minute. */
export function latchWaitingContract(makeStore: MakeStore, waitersOf: (key: string) => Promise<string[]> | string[]): void {
  const { open, newKey } = latchOpener(makeStore);
  let key: string;
  let locks: Locks;
  beforeEach(() => {
    key = newKey();
    locks = open();
  });
  const latchOf = (misbehaving?: LatchMisbehaviour) => open({ misbehaving }).countDownLatch(key);
  const noted = (count: number) => eventually(async () => (await waitersOf(key)).length === count);
  const countDown = async (times = 1) => {
    for (let done = 0; done < times; done++) await locks.countDownLatch(key).countDown();
  };
  const wait = (options: object, of = locks) => rejection(of.countDownLatch(key).await(options));
  const watched = (of = locks) => (of as unknown as { latches: { watches: Map<string, unknown> } }).latches.watches.size;

  describe('G8 a waiter', () => {
    it('goes on at once, by one poll, where there is no latch, or it is counted down', async () => {
      const looks = counting<LatchDriver>('look');
      const latch = latchOf(looks.misbehaving);
      await latch.await(woken);
      await latch.trySetCount(1);
      await latch.countDown();
      await latch.await({ waitTimeout: 0 });
      expect(looks.asked).toBe(2);
    });

    it('goes on at once when the last one counts down, not before, and so do all others, by the thousand at few requests', async () => {
      const looks = counting<LatchDriver>('look');
      const latches = [latchOf(), latchOf(), latchOf(looks.misbehaving)];
      await latches[0]!.trySetCount(2);
      const ended = jest.fn();
      const waiting = Array.from({ length: 1_000 }, (_, index) => latches[Math.min(index, 2)]!.await(woken).then(ended));
      await noted(3);
      await countDown();
      await passTime(50);
      expect(ended).not.toHaveBeenCalled();
      await countDown();
      await Promise.all(waiting);
      expect(looks.asked).toBeLessThan(10);
    });

    it('that comes while others wait is not answered by an earlier poll of theirs', async () => {
      const latch = latchOf(deaf);
      await latch.trySetCount(1);
      const early = latch.await({ ...woken, signal: signalAfter(20_000) });
      await noted(1);
      await countDown();
      // Nobody wakes them, and the next look of the first one is a minute away.
      await Promise.all([early, latch.await(woken)]);
    });

    it.each<[string, LatchMisbehaviour]>([
      ['whose wake-up is lost', deaf],
      ['that cannot be woken', () => ({ wakeUps: undefined })],
    ])('%s goes on within two retryIntervals', async (_who, misbehaving) => {
      const latch = latchOf(misbehaving);
      await latch.trySetCount(1);
      const waiting = [latch.await({ ...woken, retryInterval: 250 }), latch.await(woken)];
      await passTime(600);
      const { elapsed } = await timed(() => Promise.all([...waiting, countDown()]));
      expect(elapsed).toBeLessThanOrEqual(2 * 250 + 50);
    });

    it('that misses all of it, until the latch has been set again, goes on too', async () => {
      const latch = latchOf(deaf);
      await latch.trySetCount(1);
      const waiting = latch.await({ ...woken, retryInterval: 200 });
      await noted(1);
      await countDown();
      expect(await latchOf().trySetCount(5)).toBe(true);
      await waiting;
      expect(await latchOf().getCount()).toBe(5);
      await noted(0);
    });

    it('that came for the next round waits on when only the last one is over', async () => {
      const latch = latchOf(deaf);
      await latch.trySetCount(1);
      const first = latch.await({ ...woken, retryInterval: 200 });
      await noted(1);
      await latch.countDown();
      await latch.trySetCount(1);
      const ended = jest.fn();
      const second = latch.await({ ...woken, retryInterval: 200 }).then(ended);
      await first;
      await passTime(500);
      expect(ended).not.toHaveBeenCalled();
      await latch.countDown();
      await second;
    });
  });

  describe('of a count that is not reached,', () => {
    beforeEach(() => locks.countDownLatch(key).trySetCount(3));

    it('G9 a wait ends with its wait timeout', async () => {
      const { result, elapsed } = await timed(() => wait({ waitTimeout: 300 }));
      expect(result).toBeInstanceOf(LockTimeoutError);
      expect(result).toMatchObject({ code: 'LOCK_TIMEOUT', key, message: expect.stringContaining('3 left') });
      expect(elapsed).toBeGreaterThanOrEqual(300);
      expect(elapsed).toBeLessThan(350);
    });

    it.each([{ retryCount: 1 }, { waitTimeout: 0 }])('G9 a wait polls once with %j, and leaves nothing', async (options) => {
      const looks = counting<LatchDriver>('look');
      expect(await wait(options, open({ misbehaving: looks.misbehaving }))).toBeInstanceOf(LockTimeoutError);
      expect(looks.asked).toBe(1);
      expect(await waitersOf(key)).toEqual([]);
    });

    it('G9 a wait polls for the last time when its wait timeout ends', async () => {
      const waiting = latchOf(deaf).await({ waitTimeout: 800, retryInterval: 60_000 });
      await noted(1);
      await countDown(3);
      await waiting;
    });

    it('G9 a wait that begins while a poll is under way is answered by the next poll, which is sent when the first has settled', async () => {
      const replies = [gate(), gate()];
      let looks = 0;
      const misbehaving: LatchMisbehaviour = (real) => ({
        async look(look) {
          const reply = replies[looks++]!;
          const state = await real.look(look);
          await reply.passed;
          return state;
        },
      });
      const away = open({ misbehaving });
      const ended = jest.fn();
      const first = wait({ waitTimeout: 0 }, away);
      const others = [wait({ waitTimeout: 0 }, away), wait({ waitTimeout: 0 }, away)].map((each) => each.then(ended));
      await passTime(50);
      expect(looks).toBe(1);
      replies[0]!.open();
      expect(await first).toBeInstanceOf(LockTimeoutError);
      await eventually(() => looks === 2);
      expect(ended).not.toHaveBeenCalled();
      replies[1]!.open();
      await Promise.all(others);
      expect(ended.mock.calls).toEqual([[expect.any(LockTimeoutError)], [expect.any(LockTimeoutError)]]);
      expect(looks).toBe(2);
    });

    it('G9 a wait tells contention from an outage by the last poll', async () => {
      const change = performance.now() + 150;
      const mending = changing<LatchDriver>('look', (send) => (performance.now() < change ? Promise.reject(outage()) : send()));
      const breaking = changing<LatchDriver>('look', (send) => (performance.now() > change ? Promise.reject(outage()) : send()));
      const ends = [mending, breaking].map((misbehaving) => wait({ waitTimeout: 400, retryInterval: 10 }, open({ misbehaving })));
      expect(await ends[0]).toBeInstanceOf(LockTimeoutError);
      expect(await ends[1]).toBeInstanceOf(StoreError);
    });

    it('G9 a wait goes on through an outage that ends in time, in which nothing is taken for lost', async () => {
      let isAway = false;
      const latch = latchOf(changing('look', (send) => (isAway ? Promise.reject(outage()) : send())));
      const waiting = latch.await({ waitTimeout: 20_000, retryInterval: 20 });
      await noted(1);
      isAway = true;
      await countDown(3);
      await passTime(100);
      isAway = false;
      await waiting;
    });

    it.each(['stopWaiting', 'close'] as const)('all waits are called off by %s', async (how) => {
      const waiting = [wait(woken), wait(woken)];
      await noted(1);
      await locks[how]();
      for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown', key });
      expect(watched()).toBe(0);
      await noted(0);
    });

    it('a wait is called off by close() also where the store never answers', async () => {
      const away = open({ misbehaving: silent('look'), shutdownTimeout: 50 });
      const waiting = wait(woken, away);
      await away.close();
      expect(await waiting).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
    });

    it('a wait is called off when it begins after stopWaiting, unless the latch is counted down or it would not wait anyway', async () => {
      locks.stopWaiting();
      expect(await wait(woken)).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
      expect(await wait({ waitTimeout: 0 })).toBeInstanceOf(LockTimeoutError);
      await countDown(3);
      await locks.countDownLatch(key).await(woken);
    });

    it('G7 nothing stays, at the store or in memory, however the wait ended', async () => {
      const { signal } = new AbortController();
      const caller = new AbortController();
      const ends = [
        wait({ waitTimeout: 300, signal }),
        wait({ ...woken, signal: caller.signal }),
        wait({ ...woken, signal: signalAfter(300) }),
      ];
      const others = Array.from({ length: 3 }, () => open());
      const timeouts = others.map((other) => wait({ waitTimeout: 300, retryInterval: 60_000 }, other));
      await noted(4);
      expect([watched(), getEventListeners(signal, 'abort').length]).toEqual([1, 1]);
      caller.abort();
      await Promise.all([...ends, ...timeouts]);
      await noted(0);
      expect([locks, ...others].map((of) => watched(of))).toEqual([0, 0, 0, 0]);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    });

    it('G7 a queue entry is given up until the store has answered, with one event for all requests without an answer', async () => {
      const away = open({ misbehaving: failing('leave', 2) });
      const unknown = jest.fn();
      away.on('unknown', unknown);
      const waiting = wait({ waitTimeout: 300, retryInterval: 60_000 }, away);
      await noted(1);
      expect(await waiting).toBeInstanceOf(LockTimeoutError);
      await noted(0);
      expect(unknown).toHaveBeenCalledTimes(1);
      expect(unknown).toHaveBeenCalledWith(expect.objectContaining({ key, operation: 'leave' }));
    });

    it.each(['an answer', 'an outage'])('G7 a queue entry is given up after the poll under way has settled, by %s', async (end) => {
      const sent: string[] = [];
      const [looked, reply] = [gate(), gate()];
      const misbehaving: LatchMisbehaviour = (real) => ({
        async look(look) {
          sent.push('look');
          const state = await real.look(look);
          if (!look.queue) return state;
          looked.open();
          await reply.passed;
          sent.push('settled');
          if (end === 'an outage') throw outage();
          return state;
        },
        leave: (of) => (sent.push('leave'), real.leave(of)),
      });
      const away = open({ misbehaving });
      const caller = new AbortController();
      const waiting = wait({ ...woken, signal: caller.signal }, away);
      await looked.passed;
      caller.abort();
      expect(await waiting).toBeInstanceOf(LockAbortedError);
      await passTime(50);
      expect([sent.includes('leave'), (await waitersOf(key)).length]).toEqual([false, 1]);
      reply.open();
      await noted(0);
      expect(sent.slice(-3)).toEqual(['look', 'settled', 'leave']);
      expect(watched(away)).toBe(0);
    });

    it('G7 no timer and no queue entry of a waiter stays that went on', async () => {
      // No other timer is of this length: a store that deletes old rows has longer ones.
      const timers = timersLeft(20_000, 300_000);
      const waiting = [{ waitTimeout: 60_000 }, { signal: signalAfter(5_000) }].map((options) =>
        locks.countDownLatch(key).await({ ...woken, ...options }),
      );
      await noted(1);
      await eventually(() => timers().length >= 2);
      await countDown(3);
      await Promise.all(waiting);
      expect([timers(), watched(), await waitersOf(key)]).toEqual([[], 0, []]);
      jest.restoreAllMocks();
    });
  });
}
