import { getEventListeners } from 'node:events';
import { LockAbortedError, type Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import { latchOpener, type LatchMisbehaviour } from './open-latches.js';
import type { MakeStore } from './open-locks.js';
import { rejection, timed } from './rejection.js';
import { outage, refusal } from './store-failures.js';
import { pause, signalAfter, SLACK } from '../support/time.js';

const forEver = { waitTimeout: Infinity, retryInterval: 60_000 };

export function latchPatienceContract(makeStore: MakeStore, waitersOf: (key: string) => Promise<string[]> | string[]): void {
  const { open, newKey } = latchOpener(makeStore);
  let key: string;
  let locks: Locks;
  beforeEach(async () => {
    key = newKey();
    locks = open();
    await locks.countDownLatch(key).trySetCount(3);
  });
  const wait = (options: object, of = locks) => rejection(of.countDownLatch(key).await(options));
  const noted = (count: number) => eventually(async () => (await waitersOf(key)).length === count, { within: 10_000 });
  const watched = (of = locks) => (of as unknown as { latches: { watches: Map<string, unknown> } }).latches.watches.size;

  describe('G9 a wait for a latch', () => {
    it('ends with its patience', async () => {
      const { result, elapsed } = await timed(() => wait({ waitTimeout: 300 }));
      expect(result).toBeInstanceOf(LockTimeoutError);
      expect(result).toMatchObject({ code: 'LOCK_TIMEOUT', key, message: expect.stringContaining('3 left') });
      expect(elapsed).toBeGreaterThanOrEqual(300);
      expect(elapsed).toBeLessThan(300 + SLACK);
    });

    it.each([{ retryCount: 1 }, { waitTimeout: 0 }])('looks once with %j, and leaves nothing', async (options) => {
      let looks = 0;
      const away = open({ misbehaving: (real) => ({ look: (look) => (looks++, real.look(look)) }) });
      expect(await wait(options, away)).toBeInstanceOf(LockTimeoutError);
      expect(looks).toBe(1);
      expect(await waitersOf(key)).toEqual([]);
    });

    it('goes by a last look when patience ends', async () => {
      const deaf: LatchMisbehaviour = (real) => ({ wakeUps: { ...real.wakeUps!, isOpen: true, listen: () => () => undefined } });
      const away = open({ misbehaving: deaf }).countDownLatch(key);
      const waiting = away.await({ waitTimeout: 800, retryInterval: 60_000 });
      await noted(1);
      for (let done = 0; done < 3; done++) await locks.countDownLatch(key).countDown();
      await waiting;
    });

    it('that begins while a look is under way is answered by the next one, which is sent when that has settled', async () => {
      const replies = [gate(), gate()];
      let looks = 0;
      const away = open({
        misbehaving: (real) => ({
          async look(look) {
            const reply = replies[looks++]!;
            const state = await real.look(look);
            await reply.passed;
            return state;
          },
        }),
      });
      const ended = jest.fn();
      const first = wait({ waitTimeout: 0 }, away);
      const others = [wait({ waitTimeout: 0 }, away), wait({ waitTimeout: 0 }, away)].map((each) => each.then(ended));
      await pause(50);
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

    it('tells contention from an outage by the last look', async () => {
      const change = performance.now() + 150;
      const failing = (isFailing: () => boolean): LatchMisbehaviour => {
        return (real) => ({ look: (look) => (isFailing() ? Promise.reject(outage()) : real.look(look)) });
      };
      const mending = open({ misbehaving: failing(() => performance.now() < change) });
      const breaking = open({ misbehaving: failing(() => performance.now() > change) });
      const options = { waitTimeout: 400, retryInterval: 10 };
      const [mended, broken] = await Promise.all([wait(options, mending), wait(options, breaking)]);
      expect(mended).toBeInstanceOf(LockTimeoutError);
      expect(broken).toBeInstanceOf(StoreError);
    });

    it('goes on through an outage that ends in time, in which nothing is taken for lost', async () => {
      let isAway = false;
      const away = open({ misbehaving: (real) => ({ look: (look) => (isAway ? Promise.reject(outage()) : real.look(look)) }) });
      const waiting = away.countDownLatch(key).await({ waitTimeout: 20_000, retryInterval: 20 });
      await noted(1);
      isAway = true;
      for (let done = 0; done < 3; done++) await locks.countDownLatch(key).countDown();
      await pause(100);
      isAway = false;
      await waiting;
    });

    it('ends at once, whatever the patience, when the store refuses', async () => {
      const away = open({ misbehaving: () => ({ look: () => Promise.reject(refusal()) }) });
      expect(await wait(forEver, away)).toMatchObject({ name: 'StoreError', transient: false, key });
    });

    it('ends at once when the signal aborts, between two looks or while one is under way, and looks at nothing when it has', async () => {
      const silent = open({ misbehaving: () => ({ look: () => new Promise(() => undefined) }) });
      for (const each of [locks, silent]) {
        const caller = new AbortController();
        const waiting = wait({ ...forEver, signal: caller.signal }, each);
        await pause(100);
        caller.abort(new Error('The user went away.'));
        const { result, elapsed } = await timed(() => waiting);
        expect(result).toMatchObject({ code: 'LOCK_ABORTED', reason: 'signal', cause: { message: 'The user went away.' }, key });
        expect(elapsed).toBeLessThan(SLACK);
        expect(await wait({ signal: caller.signal }, each)).toMatchObject({ code: 'LOCK_ABORTED' });
        expect(watched(each)).toBe(0);
        expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
      }
    });
  });

  describe('a wait while the locks are being closed', () => {
    it('is called off, whoever waits', async () => {
      const waiting = [wait(forEver), wait(forEver)];
      await noted(1);
      locks.stopWaiting();
      for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown', key });
      expect(watched()).toBe(0);
      await noted(0);
    });

    it('is called off when it begins later, unless the latch is counted down or it would not wait anyway', async () => {
      locks.stopWaiting();
      expect(await wait(forEver)).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
      expect(await wait({ waitTimeout: 0 })).toBeInstanceOf(LockTimeoutError);
      for (let done = 0; done < 3; done++) await locks.countDownLatch(key).countDown();
      await locks.countDownLatch(key).await(forEver);
    });

    it('still gets the answer that is under way', async () => {
      const late = newKey();
      const away = open({ misbehaving: (real) => ({ look: (look) => pause(100).then(() => real.look(look)) }) });
      const waiting = [away.countDownLatch(late).await(forEver), wait(forEver, away)] as const;
      away.stopWaiting();
      await waiting[0];
      expect(await waiting[1]).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
    });

    it('is called off by close(), also where the store never answers, and refused after it', async () => {
      const silent = open({ misbehaving: () => ({ look: () => new Promise(() => undefined) }), shutdownTimeout: 50 });
      const waiting = [wait(forEver), wait(forEver, silent)];
      await noted(1);
      await Promise.all([locks.close(), silent.close()]);
      for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
      expect(await wait({})).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
      await noted(0);
    });
  });

  describe('G7 of those who wait no more', () => {
    it('nothing stays, at the store or in memory, however the wait ended', async () => {
      const { signal } = new AbortController();
      const caller = new AbortController();
      const ends = [
        wait({ waitTimeout: 300, signal }),
        wait({ ...forEver, signal: caller.signal }),
        wait({ ...forEver, signal: signalAfter(300) }),
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

    it('a place is given up until the store has answered, and told of meanwhile', async () => {
      let failures = 2;
      const away = open({ misbehaving: (real) => ({ leave: (of) => (failures-- > 0 ? Promise.reject(outage()) : real.leave(of)) }) });
      const unknown = jest.fn();
      away.on('unknown', unknown);
      const waiting = wait({ waitTimeout: 300, retryInterval: 60_000 }, away);
      await noted(1);
      expect(await waiting).toBeInstanceOf(LockTimeoutError);
      await noted(0);
      expect(unknown).toHaveBeenCalledTimes(2);
      expect(unknown).toHaveBeenCalledWith(expect.objectContaining({ key, operation: 'leave' }));
    });

    it.each(['an answer', 'an outage'])('a place is given up after the look under way has settled, by %s', async (end) => {
      const sent: string[] = [];
      const [looked, reply] = [gate(), gate()];
      const away = open({
        misbehaving: (real) => ({
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
        }),
      });
      const caller = new AbortController();
      const waiting = wait({ ...forEver, signal: caller.signal }, away);
      await looked.passed;
      caller.abort();
      expect(await waiting).toBeInstanceOf(LockAbortedError);
      await pause(50);
      expect([sent.includes('leave'), (await waitersOf(key)).length]).toEqual([false, 1]);
      reply.open();
      await noted(0);
      expect(sent.slice(-3)).toEqual(['look', 'settled', 'leave']);
      expect(watched(away)).toBe(0);
    });

    it('no timer, and no place of one who was let go on', async () => {
      const set = jest.spyOn(globalThis, 'setTimeout');
      const clear = jest.spyOn(globalThis, 'clearTimeout');
      // Nobody else has timers of this length: a store that deletes old rows has longer ones.
      const timers = () =>
        set.mock.results
          .filter((_, index) => set.mock.calls[index]![1]! > 20_000 && set.mock.calls[index]![1]! < 300_000)
          .map(({ value }) => value as NodeJS.Timeout)
          .filter((timer) => clear.mock.calls.every(([cleared]) => cleared !== timer)).length;
      const waiting = [
        locks.countDownLatch(key).await({ ...forEver, waitTimeout: 60_000 }),
        wait({ ...forEver, signal: signalAfter(500) }),
      ];
      await noted(1);
      await eventually(() => timers() >= 2);
      for (let done = 0; done < 3; done++) await open().countDownLatch(key).countDown();
      await waiting[0];
      await expect(waiting[1]).rejects.toThrow('should have rejected');
      expect([timers(), watched(), await waitersOf(key)]).toEqual([0, 0, []]);
      jest.restoreAllMocks();
    });
  });
}
