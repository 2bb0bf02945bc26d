import { passTime } from '../support/virtual-time.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease, Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { standStill } from '../support/time.js';
import { gate } from '../support/gate.js';
import { rejection } from '../support/rejection.js';
import { patient, type Setting } from './setting.js';

/** In which call chain listeners run: with the request id and the transaction of the call that they hear of, never of another one. */
export function contextsContract({ open, newKey, takeAway }: Setting): void {
  describe('a listener runs in the context of the call that its event is about', () => {
    const chain = new AsyncLocalStorage<string>();
    let key: string;
    let locks: Locks;
    let heard: string[];

    beforeEach(() => {
      key = newKey();
      locks = open();
      heard = [];
      for (const event of ['acquired', 'waiting', 'timeout'] as const) {
        locks.on(event, () => heard.push(`${event}: ${chain.getStore()}`));
      }
    });

    it.each(['its own process', 'another one'])('which waits behind a holder of %s', async (where) => {
      const isLocal = where === 'its own process';
      const holder = await chain.run('holder', () => (isLocal ? locks : open()).acquire(key, patient));
      const next = chain.run('next', () => locks.acquire(key, patient));
      const impatient = chain.run('impatient', () => rejection(locks.acquire(key, { ...patient, waitTimeout: 50 })));
      const last = chain.run('last', () => locks.acquire(key, patient));
      await impatient;
      await chain.run('another call', () => holder.release());
      // A waiter that is not fair may be overtaken, where each has an entry of its own at the store.
      await Promise.all([next, last].map((lease) => chain.run('another call', async () => (await lease).release())));
      const expected = ['waiting: next', 'waiting: impatient', 'waiting: last', 'timeout: impatient', 'acquired: next', 'acquired: last'];
      expect(heard.sort()).toEqual((isLocal ? ['acquired: holder', ...expected] : expected).sort());
    });

    it('and whose signal aborts because another one found its key lost', async () => {
      const aborted: unknown[] = [];
      const holder = await chain.run('holder', async () => {
        const lease = await locks.acquire(key, patient);
        lease.signal.addEventListener('abort', () => aborted.push(chain.getStore()));
        return lease;
      });
      const next = chain.run('next', () => locks.acquire(key, { ...patient, retryInterval: 50 }));
      await takeAway(holder);
      // The first one who asks finds it.
      await chain.run('another call', () => rejection(holder.renew()));
      await eventually(() => expect(aborted).toEqual(['holder']));
      await (await next).release();
      expect(heard).toContain('acquired: next');
    });
  });
}

/** A listener runs in the midst of a release. Whatever it does, the key has one holder, and each lease its whole length. */
export function listenersContract({ open, newKey }: Setting): void {
  describe('a listener to a release while others wait here', () => {
    const options = { ...patient, keyTimeout: 2_000 };
    let locks: Locks;
    let waiting: Promise<Lease>[];

    /** The first of three who wait has the key; the listener hears of its release. */
    async function first(listener: (lease: Lease) => void): Promise<Lease> {
      locks = open({ localQueue: { handOvers: 32, time: 10_000 } });
      const key = newKey();
      const holder = await locks.acquire(key, options);
      waiting = Array.from({ length: 3 }, () => locks.acquire(key, options));
      await holder.release();
      const lease = await waiting[0]!;
      const forget = locks.on('released', () => {
        forget();
        listener(lease);
      });
      return lease;
    }

    it('may release the lease again, which says the same (G2, G5)', async () => {
      const answers: Promise<boolean>[] = [];
      const lease = await first((released) => void answers.push(released.release()));
      const lost = jest.fn();
      locks.on('lost', lost);
      expect(await lease.release()).toBe(true);
      expect(await Promise.all(answers)).toEqual([true]);
      const next = await waiting[1]!;
      expect(await Promise.race([waiting[2], passTime(100)])).toBeUndefined();
      next.assertHeld();
      expect(await next.release()).toBe(true);
      const last = await waiting[2]!;
      last.assertHeld();
      expect(last.fencingToken).toBeGreaterThan(next.fencingToken!);
      expect(await last.release()).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    });

    it('inside the call chain that held the key takes it like another caller', async () => {
      locks = open();
      const key = newKey();
      const [entered, mayEnd] = [gate(), gate()];
      let again: Promise<Lease> | undefined;
      const work = async (lease: Lease) => {
        entered.open();
        await mayEnd.passed;
        locks.on('released', () => (again ??= locks.acquire(key, options)));
        await lease.release();
      };
      const call = locks.using(key, work, options);
      await entered.passed;
      const next = locks.acquire(key, options);
      mayEnd.open();
      await call;
      await (await next).release();
      const lease = await again!;
      expect(lease.fencingToken).toBeGreaterThan((await next).fencingToken!);
      await lease.release();
    });

    it.each([1_500, 2_500])('and blocks for %d ms leaves the next one the whole length (G1, G3)', async (ms) => {
      const lease = await first(() => standStill(ms));
      expect(await lease.release()).toBe(true);
      const next = await waiting[1]!;
      expect(next.remaining()).toBeGreaterThan(options.keyTimeout / 2);
      await next.release();
      await (await waiting[2]!).release();
    });
  });
}
