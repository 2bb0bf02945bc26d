import type { Lease, Locks } from 'nestjs-distributed-lock/core';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { pause, standStill } from '../support/time.js';

const patient = { keyTimeout: 2_000, waitTimeout: Infinity };

/** A listener runs in the midst of a release. Whatever it does, the key has one holder, and each lease its whole length. */
export function listenersContract(makeStore: MakeStore, kind: Kind): void {
  describe('a listener that is told of a release while others wait here', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    let locks: Locks;
    let waiting: Promise<Lease>[];
    let lost: number;

    /** The first of three who wait has the key; the next release is told to the listener. */
    async function first(listener: (lease: Lease) => void): Promise<Lease> {
      locks = open({ localQueue: { handOvers: 32, time: 10_000 } });
      const key = newKey();
      const holder = await locks.acquire(key, patient);
      waiting = Array.from({ length: 3 }, () => locks.acquire(key, patient));
      await holder.release();
      const lease = await waiting[0]!;
      lost = 0;
      locks.on('lost', () => lost++);
      const forget = locks.on('released', () => {
        forget();
        listener(lease);
      });
      return lease;
    }

    /** They get it one after the other. */
    async function expectTheOthers(): Promise<void> {
      const [, second, third] = waiting;
      const next = await second!;
      next.assertHeld();
      expect(await Promise.race([third, pause(100, 'waiting')])).toBe('waiting');
      next.assertHeld();
      expect(await next.release()).toBe(true);
      const last = await third!;
      last.assertHeld();
      expect(last.fencingToken).toBeGreaterThan(next.fencingToken!);
      expect(await last.release()).toBe(true);
      expect(lost).toBe(0);
    }

    it('may release the lease again, which says the same (G2, G5)', async () => {
      const answers: Promise<boolean>[] = [];
      const lease = await first((released) => void answers.push(released.release()));
      expect(await lease.release()).toBe(true);
      expect(await Promise.all(answers)).toEqual([true]);
      await expectTheOthers();
    });

    it('inside the call chain that held the key takes it like a stranger', async () => {
      locks = open();
      const key = newKey();
      const [entered, mayEnd] = [gate(), gate()];
      let again: Promise<Lease> | undefined;
      const call = locks.using(
        key,
        async (lease) => {
          entered.open();
          await mayEnd.passed;
          locks.on('released', () => (again ??= locks.acquire(key, patient)));
          await lease.release();
        },
        patient,
      );
      await entered.passed;
      const next = locks.acquire(key, patient);
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
      expect(next.remaining()).toBeGreaterThan(patient.keyTimeout / 2);
      await next.release();
      await (await waiting[2]!).release();
    });
  });
}
