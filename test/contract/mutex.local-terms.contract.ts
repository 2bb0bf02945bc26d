import type { Lease, Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { oneByOne } from './one-by-one.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';
import { pause, SLACK } from '../support/time.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** Callers of one process who want one key, each on terms of its own. */
export function localTermsContract(makeStore: MakeStore, kind: Kind): void {
  describe('callers of one process who wait for one key', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    let key: string;
    let locks: Locks;

    beforeEach(() => {
      key = newKey();
      locks = open();
    });

    it('each get a lease of their own keyTimeout', async () => {
      const holder = await locks.acquire(key, patient);
      const lengths = [60_000, 5_000, 5_000, 60_000, 20_000];
      const leases = lengths.map((keyTimeout) => locks.acquire(key, { ...patient, keyTimeout }));
      await holder.release();
      const look = async (waiting: Promise<Lease>, index: number) => {
        const lease = await waiting;
        expect(lease.remaining()).toBeLessThanOrEqual(lengths[index]!);
        expect(lease.remaining()).toBeGreaterThan(lengths[index]! / 2);
        await lease.release();
      };
      await Promise.all(leases.map(look));
    });

    it('each give up by their own patience and by their own signal, and the others go on', async () => {
      const holder = await locks.acquire(key, patient);
      const order: string[] = [];
      const caller = new AbortController();
      const call = (name: string, options: object) =>
        locks
          .using(key, () => void order.push(name), { ...patient, ...options })
          .catch((error: Error) => order.push(`${name} ${error.name}`));
      const calls = [
        call('first', {}),
        call('late', { waitTimeout: 200 }),
        call('second', {}),
        call('aborted', { signal: caller.signal }),
        call('later', { waitTimeout: 400 }),
        call('third', { waitTimeout: 30_000 }),
      ];
      caller.abort();
      await calls[3];
      expect(order).toEqual(['aborted LockAbortedError']);
      await eventually(() => order.length === 3);
      await holder.release();
      await Promise.all(calls);
      const served = order.splice(3);
      expect(order.slice(1)).toEqual(['late LockTimeoutError', 'later LockTimeoutError']);
      expect(served).toEqual(['first', 'second', 'third']);
    });

    it('keep the key for their own minHold, and for no other’s', async () => {
      const order = [
        { minHold: 300, isKept: true },
        { minHold: 0, isKept: false },
        { minHold: 300, isKept: true },
      ];
      const holder = await locks.acquire(key, patient);
      const holds: { isKept: boolean; at: number }[] = [];
      const hold = async (waiting: Promise<Lease>, isKept: boolean) => {
        const lease = await waiting;
        holds.push({ isKept, at: performance.now() });
        await lease.release();
      };
      const calls = order.map(({ minHold, isKept }) => hold(locks.acquire(key, { ...patient, minHold }), isKept));
      await holder.release();
      await Promise.all(calls);
      await hold(locks.acquire(key, patient), false);
      for (const [index, { isKept, at }] of holds.slice(0, -1).entries()) {
        const gap = holds[index + 1]!.at - at;
        if (isKept) expect(gap).toBeGreaterThanOrEqual(290);
        else expect(gap).toBeLessThan(290);
      }
    });

    it('are called off by stopWaiting behind one whose request is under way, which is granted', async () => {
      const sent = gate();
      const answer = gate();
      const slow = open({ misbehaving: oneByOne(answer.passed, () => sent.open()) });
      const first = slow.acquire(key, patient);
      const second = rejection(slow.acquire(key, patient));
      await sent.passed;
      slow.stopWaiting();
      answer.open();
      (await first).assertHeld();
      expect(await second).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });

    it('are held to their own maxHold, and to no other’s', async () => {
      const holder = await locks.acquire(key, patient);
      const bounded = locks.using(key, (lease) => pause(200).then(() => lease.signal.aborted), {
        ...patient,
        maxHold: 50,
        onLost: 'ignore',
      });
      const free = locks.using(key, (lease) => pause(200).then(() => lease.signal.aborted), patient);
      await holder.release();
      expect([await bounded, await free]).toEqual([true, false]);
    });

    it('go on when the body of the one before never ends, once its maxHold and its keyTimeout are over', async () => {
      const never = new Promise<void>(() => undefined);
      void locks.using(key, () => never, { ...patient, keyTimeout: 500, maxHold: 100 }).catch(() => undefined);
      const start = performance.now();
      const next = await locks.acquire(key, { ...patient, keyTimeout: 500 });
      expect(performance.now() - start).toBeLessThan(100 + 500 + SLACK);
      next.assertHeld();
    });
  });
}
