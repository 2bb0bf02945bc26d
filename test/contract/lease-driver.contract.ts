import type { AcquireRequest } from '../../lib/core/store/lease-driver.js';
import { eventually } from '../../lib/testing/store/eventually.js';
import { driverRequests, GRANTED, TAKEN, tokenOf } from './driver-requests.js';
import { itInTime, OFFER } from './in-time.js';
import type { Kind } from './kinds.js';
import { type MakeStore, SHORT_LEASE, where } from './open-locks.js';
import { timed } from '../support/rejection.js';

/** The promises of every driver of an exclusive lock to the engine above it. */
export function leaseDriverContract(makeStore: MakeStore, kind: Kind): void {
  describe('the driver', () => {
    const { newKey, setUp, acquire, renewAll, release, leave, look, stateOf, states, remaining } = driverRequests(makeStore, kind);
    const renew = async (owner: string, ttl = 20_000) => (await renewAll({ owner, ttl }))[0];
    const tokenIn = (owner: string, request?: Partial<AcquireRequest>) => tokenOf(acquire(owner, request));

    describe('G2 grants a key to one owner', () => {
      it('at a time, and says who has it and for how long', async () => {
        expect(await acquire('a')).toMatchObject(GRANTED);
        const reply = await acquire('b');
        expect(reply).toMatchObject({ granted: false, holder: 'a', ahead: 0 });
        expect((reply as { remaining: number }).remaining).toBeGreaterThan(10_000);
        expect((reply as { remaining: number }).remaining).toBeLessThanOrEqual(20_000);
      });

      it('of many who ask together', async () => {
        const replies = await Promise.all(Array.from({ length: 50 }, (_, index) => acquire(`owner ${index}`)));
        expect(replies.filter((reply) => reply.granted)).toHaveLength(1);
      });

      it('again when the lease has run out, not before', async () => {
        const { elapsed } = await timed(async () => {
          await acquire('a', { ttl: SHORT_LEASE });
          await eventually(async () => (await acquire('b')).granted);
        });
        expect(elapsed).toBeGreaterThan(SHORT_LEASE - 5);
      });

      it('with tokens that grow by at least as many as are reserved, whatever ends the tenure', async () => {
        // Two seconds of the clock that tokens follow.
        const reserved = 2_000_000;
        const first = await tokenIn('a', { tokens: reserved });
        await release('a');
        const second = await tokenIn('b', { ttl: SHORT_LEASE });
        expect(second).toBeGreaterThanOrEqual(first + reserved);
        await eventually(async () => (await stateOf('b')) === 'free');
        const third = await tokenIn('c');
        expect(third).toBeGreaterThan(second);
        await leave('c');
        const fourth = await tokenIn('d');
        expect(fourth).toBeGreaterThan(third);
        for (const token of [first, second, third, fourth]) expect(Number.isSafeInteger(token + reserved)).toBe(true);
      });

      it('with tokens from a floor on, where the request has one, and goes on from there', async () => {
        const floor = (await tokenIn('a')) + 2_000_000;
        await release('a');
        expect(await tokenIn('b', { floor, tokens: 5 })).toBeGreaterThanOrEqual(floor);
        await release('b');
        expect(await tokenIn('c')).toBeGreaterThanOrEqual(floor + 5);
      });
    });

    describe('G5 compares the owner', () => {
      it('of a release, a give-up and a renewal, each lease of a batch by itself', async () => {
        const other = newKey();
        await acquire('a');
        expect(await release('b')).toBe('lost');
        expect(await release('b', 1)).toBe('lost');
        await leave('b');
        expect(await stateOf('a')).toBe('held');
        await acquire('b', { key: other, ttl: 10_000 });
        const mine = { owner: 'b', ttl: 60_000 };
        const batch = [mine, { ...mine, key: other }, { owner: 'a', ttl: 60_000, key: newKey() }, { owner: 'a', ttl: 60_000 }];
        expect(await renewAll(...batch)).toEqual(['lost', 'renewed', 'lost', 'renewed']);
        expect((await look('b', other)).remaining).toBeGreaterThan(30_000);
        expect(await remaining()).toBeGreaterThan(30_000);
      });

      it('of one that has expired: it cannot release, renew or keep the next lease', async () => {
        await acquire('expired', { ttl: SHORT_LEASE });
        await eventually(async () => (await acquire('next')).granted);
        expect(await renew('expired')).toBe('lost');
        expect(await release('expired')).toBe('lost');
        expect(await release('expired', 60_000)).toBe('lost');
        await leave('expired');
        expect(await acquire('expired')).toMatchObject({ granted: false, holder: 'next' });
        expect(await remaining('next')).toBeLessThanOrEqual(20_000);
        expect(await release('next')).toBe('released');
      });
    });

    describe('G6 is safe to repeat', () => {
      it('an acquire: the owner has it, no shorter than before, with a token that is no smaller', async () => {
        const first = await tokenIn('a', { ttl: 60_000 });
        const second = await tokenIn('a', { ttl: 5_000, queue: true });
        expect(second).toBeGreaterThanOrEqual(first);
        expect(await remaining()).toBeGreaterThan(30_000);
        expect(await acquire('b')).toMatchObject(TAKEN);
        expect(await release('a')).toBe('released');
        expect(await stateOf('b')).toBe('free');
      });

      it('a renewal: it pushes the end later and never nearer, and never takes a key that is free', async () => {
        expect(await renew('a')).toBe('lost');
        await acquire('a', { ttl: 10_000 });
        for (const ttl of [60_000, 5_000]) {
          expect(await renew('a', ttl)).toBe('renewed');
          expect(await remaining()).toBeGreaterThan(30_000);
        }
        await release('a');
        expect(await renew('a')).toBe('lost');
        expect(await stateOf('a')).toBe('free');
      });

      it('a release', async () => {
        await acquire('a');
        expect(await release('a')).toBe('released');
        expect(await release('a')).toBe('lost');
        expect(await stateOf('b')).toBe('free');
      });

      it('a release that keeps the key: it is still its own, and the end stays', async () => {
        await acquire('a');
        expect(await release('a', 10_000)).toBe('released');
        expect(await release('a', 60_000)).toBe('released');
        expect(await renew('a', 60_000)).toBe('lost');
        await leave('a');
        expect(await acquire('b')).toMatchObject(TAKEN);
        expect(await remaining()).toBeLessThanOrEqual(10_000);
      });

      it('an acquire that does not wait: it leaves no queue entry, also behind waiters', async () => {
        await acquire('a');
        await acquire('b', { queue: true });
        for (let times = 0; times < 2; times++) expect(await acquire('c')).toMatchObject(TAKEN);
        expect(await stateOf('c')).toBe('taken');
        await leave('b');
        await release('a');
        expect(await stateOf('c')).toBe('free');
      });

      it('joining the queue: each owner has one queue entry', async () => {
        await acquire('a');
        for (let times = 0; times < 3; times++) expect(await acquire('b', { queue: true })).toMatchObject({ granted: false, ahead: 0 });
        expect(await acquire('c', { queue: true })).toMatchObject({ granted: false, ahead: 1 });
        expect(await acquire('b', { queue: true })).toMatchObject({ ahead: 0 });
      });

      it('a give-up', async () => {
        await acquire('a');
        for (let times = 0; times < 2; times++) await acquire('b', { queue: true });
        for (const owner of ['b', 'b']) await leave(owner);
        expect(await stateOf('b')).toBe('taken');
        for (const owner of ['a', 'a']) await leave(owner);
        expect(await stateOf('b')).toBe('free');
      });
    });

    it('says of a key, to all who ask, who has it, by the last of the tokens that were reserved, or that nobody has it', async () => {
      const free = { state: 'free', holder: null, token: null };
      /** There is no one token of a key that could be shared. */
      const told = (token: number) => (kind.share ? null : token);
      expect(await look('a')).toMatchObject(free);
      const first = await tokenIn('a', { tokens: 5 });
      await acquire('b', { queue: true });
      const reply = { remaining: expect.any(Number), holder: 'a', token: told(first + 4) };
      expect(await look('a')).toEqual({ state: 'held', ...reply });
      expect(await look('b')).toEqual({ state: 'queued', ...reply });
      expect(await look('c')).toEqual({ state: 'taken', ...reply });
      await release('a');
      const second = await tokenIn('b');
      expect(second).toBeGreaterThan(first);
      expect(await look('a')).toMatchObject({ state: 'taken', holder: 'b', token: told(second) });
      await release('b');
      expect(await look('a')).toMatchObject(free);
    });

    describe('hands a key to the queue', () => {
      const queueUp = async () => {
        setUp();
        await acquire('a');
        for (const owner of ['b', 'c', 'd']) await acquire(owner, { queue: true });
      };

      for (const [how, end] of Object.entries({ 'a release': release, 'a give-up': leave }))
        itInTime(`by ${how}, to its head, and to nobody else`, queueUp, async () => {
          await end('a');
          expect(await states('a', 'b', 'c', 'd')).toEqual(['taken', 'held', 'queued', 'queued']);
          expect(await acquire('stranger')).toMatchObject({ granted: false, holder: 'b' });
          expect(await acquire('c', { queue: true })).toMatchObject({ granted: false, holder: 'b', ahead: 0 });
          expect(await acquire('b', { queue: true })).toMatchObject(GRANTED);
          expect(await remaining('b')).toBeGreaterThan(10_000);
        });

      it('for about a second: the next one gets what the head does not take', async () => {
        await queueUp();
        const { elapsed } = await timed(async () => {
          await release('a');
          expect(await remaining('b')).toBeLessThanOrEqual(OFFER);
          await eventually(async () => (await acquire('c', { queue: true })).granted);
        });
        expect(elapsed).toBeGreaterThan(OFFER - 5);
        expect(await stateOf('b')).toBe('taken');
      });

      it('when a lease runs out too: to a waiter, not to a newcomer', async () => {
        await acquire('a', { ttl: SHORT_LEASE });
        const waiters = ['b', 'c', 'd', 'e'];
        for (const owner of waiters) await acquire(owner, { queue: true });
        await eventually(async () => {
          const reply = await acquire('stranger');
          expect(reply).toMatchObject({ granted: false, holder: expect.stringMatching(/^[b-e]$/) });
        });
      });

      where(makeStore, 'oneServer', () => {
        itInTime('past waiters that gave up', queueUp, async () => {
          await leave('b');
          await leave('d');
          await acquire('e', { queue: true });
          await release('a');
          expect(await acquire('c', { queue: true })).toMatchObject(GRANTED);
          await release('c');
          expect(await states('b', 'd', 'e')).toEqual(['taken', 'taken', 'held']);
        });

        itInTime('when the head gives up what it is offered', queueUp, async () => {
          await release('a');
          await leave('b');
          expect(await stateOf('c')).toBe('held');
        });
      });

      it('not before a minHold is over', async () => {
        await queueUp();
        const { elapsed } = await timed(async () => {
          await release('a', SHORT_LEASE);
          await eventually(async () => (await acquire('b', { queue: true })).granted);
        });
        expect(elapsed).toBeGreaterThan(SHORT_LEASE - 5);
        expect(await stateOf('c')).toBe('queued');
      });
    });
  });
}
