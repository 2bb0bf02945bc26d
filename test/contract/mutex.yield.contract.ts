import type { Locks, LockEvents } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, type OpenOptions, where } from './open-locks.js';
import { outage } from './store-failures.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** What a process hears of a key that the store has lost, although its callers pass it on without a release. */
export function yieldContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey, driver } = locksOpener(makeStore, kind);
  let key: string;
  let losses: LockEvents['lost'][];

  beforeEach(() => {
    key = newKey();
    losses = [];
  });

  const openHeard = (options?: OpenOptions): Locks => {
    const locks = open(options);
    locks.on('lost', (event) => losses.push(event));
    return locks;
  };
  const deleteKeyOf = (owner: string) => driver().release({ key, owner, keepFor: 0 });

  describe('G4 a process hears of a key that the store has lost', () => {
    it('by the request that gives the turns of its callers up, and says so for the one who had the last of them', async () => {
      const locks = openHeard({ localQueue: { handOvers: 1 } });
      const holder = await locks.acquire(key, patient);
      const next = locks.acquire(key, patient);
      await deleteKeyOf(holder.owner);
      const stranger = await open().acquire(key, patient);
      // It does not wait for that request.
      expect(await holder.release()).toBe(true);
      await eventually(() => losses.length > 0);
      expect(losses).toEqual([expect.objectContaining({ key, owner: holder.owner, afterRelease: true })]);
      await stranger.release();
      const lease = await next;
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
      expect(losses).toHaveLength(1);
    });

    it('and not by one that is repeated: the first may have been applied', async () => {
      let yields = 0;
      const locks = openHeard({
        localQueue: { handOvers: 1 },
        misbehaving: (real) => ({
          async acquire(request) {
            const reply = await real.acquire(request);
            if (request.yields && ++yields === 1) throw outage();
            return reply;
          },
        }),
      });
      const holder = await locks.acquire(key, patient);
      const next = locks.acquire(key, patient);
      await holder.release();
      await (await next).release();
      expect(yields).toBe(2);
      expect(losses).toEqual([]);
    });

    it('by the next renewal, which ends the lease of the one who has it by then', async () => {
      const locks = openHeard({ localQueue: { time: 60_000 } });
      const first = await locks.acquire(key, patient);
      const second = locks.acquire(key, patient);
      const third = locks.acquire(key, patient);
      const fourth = locks.acquire(key, patient);
      await first.release();
      const holder = await second;
      await deleteKeyOf(holder.owner);
      await holder.release();
      const present = await third;
      expect(present.owner).toBe(holder.owner);
      await expect(present.renew()).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(losses.map(({ owner }) => owner)).toEqual([holder.owner]);
      expect(await present.release()).toBe(false);
      await (await fourth).release();
    });

    where(makeStore, 'extend', () => {
      it('by a request for more turns, which ends the lease of the one who has it by then', async () => {
        const asked = gate();
        const answer = gate();
        const locks = openHeard({
          localQueue: { time: 60_000, handOvers: 4 },
          misbehaving: (real) => ({
            async extend(request) {
              asked.open();
              await answer.passed;
              return real.extend!(request);
            },
          }),
        });
        const first = await locks.acquire(key, patient);
        const others = Array.from({ length: 6 }, () => locks.acquire(key, patient));
        await first.release();
        for (const lease of others.slice(0, 2)) await (await lease).release();
        await asked.passed;
        const present = await others[2]!;
        await deleteKeyOf(present.owner);
        answer.open();
        await eventually(() => present.signal.aborted);
        expect(losses.map(({ owner }) => owner)).toEqual([present.owner]);
        expect(await present.release()).toBe(false);
        for (const lease of others.slice(3)) await (await lease).release();
      });
    });
  });
}
