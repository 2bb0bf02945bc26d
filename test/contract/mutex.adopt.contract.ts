import type { AdoptReply, LeaseDriver } from '../../lib/core/store/lease-driver.js';
import { eventually } from '../../lib/testing/store/eventually.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, SHORT_LEASE, where } from './open-locks.js';

/** A key that changes its owner, and is free at no time. */
export function adoptContract(makeStore: MakeStore, kind: Kind): void {
  const { newKey, driver: newDriver } = locksOpener(makeStore, kind);

  where(makeStore, 'adopt', () => {
    describe('the driver gives a key from its owner to another one', () => {
      let driver: LeaseDriver;
      let key: string;

      beforeEach(() => {
        driver = newDriver();
        key = newKey();
      });
      const acquire = async (owner: string, { ttl = 60_000, tokens = 1, queue = false } = {}): Promise<number> => {
        const reply = await driver.acquire({ key, owner, ttl, tokens, queue });
        return reply.granted ? reply.token! : 0;
      };
      const adopt = (owner: string, from: string, ttl = 20_000): Promise<AdoptReply> =>
        newDriver().adopt!({ key, owner, from, ttl, tokens: 1 });
      const release = (owner: string) => driver.release({ key, owner, keepFor: 0 });
      const look = (owner: string) => driver.check({ key, owner });
      const tokenOf = (reply: AdoptReply): number => (reply as { token: number }).token;

      it('who has it for as long as it asks for, and the old one has it no more (G5)', async () => {
        await acquire('a');
        expect(await adopt('b', 'a')).toEqual({ token: expect.any(Number) });
        expect(await look('b')).toMatchObject({ state: 'held', holder: 'b' });
        expect((await look('b')).remaining).toBeLessThanOrEqual(20_000);
        expect((await look('b')).remaining).toBeGreaterThan(10_000);
        expect(await release('a')).toBe('lost');
        expect(await driver.renew([{ key, owner: 'a', ttl: 60_000 }])[0]).toBe('lost');
        expect(await release('b')).toBe('released');
        expect((await look('b')).state).toBe('free');
      });

      it('once: nobody else gets it, also of many who ask together (G2)', async () => {
        await acquire('a');
        const replies = await Promise.all(['b', 'c', 'd', 'e'].map((owner) => adopt(owner, 'a')));
        expect(replies.filter((reply) => reply !== 'lost')).toHaveLength(1);
        const { holder } = await look('b');
        expect(await adopt('f', 'a')).toBe('lost');
        expect(await look(holder!)).toMatchObject({ state: 'held', holder });
      });

      it('with a token beyond all that were reserved before (G2)', async () => {
        const reserved = 2_000_000;
        const first = await acquire('a', { tokens: reserved });
        const second = tokenOf(await adopt('b', 'a'));
        expect(second).toBeGreaterThanOrEqual(first + reserved);
        const third = tokenOf(await adopt('c', 'b'));
        expect(third).toBeGreaterThan(second);
        await release('c');
        expect(await acquire('d')).toBeGreaterThan(third);
      });

      it('not when the lease of the old one is over, was released or is kept for a minHold (G2)', async () => {
        expect(await adopt('b', 'a')).toBe('lost');
        await acquire('a', { ttl: SHORT_LEASE });
        await eventually(async () => (await look('a')).state === 'free');
        expect(await adopt('b', 'a')).toBe('lost');
        await acquire('a');
        await release('a');
        expect(await adopt('b', 'a')).toBe('lost');
        expect((await look('b')).state).toBe('free');
        await acquire('a');
        await driver.release({ key, owner: 'a', keepFor: 60_000 });
        expect(await adopt('b', 'a')).toBe('lost');
      });

      it('who asks again, because the reply was lost: it has it, no shorter than before, with a token that is no smaller (G6)', async () => {
        await acquire('a');
        const first = tokenOf(await adopt('b', 'a', 60_000));
        expect(tokenOf(await adopt('b', 'a'))).toBeGreaterThanOrEqual(first);
        expect((await look('b')).remaining).toBeGreaterThan(30_000);
        await release('b');
        expect(await adopt('b', 'a')).toBe('lost');
      });

      it('and back, whether or not the other one has it: for as long as it asks for (G6)', async () => {
        await acquire('a');
        await adopt('b', 'a', 60_000);
        expect(await adopt('a', 'b')).not.toBe('lost');
        expect((await look('a')).remaining).toBeLessThanOrEqual(20_000);
        for (const owner of ['a', 'c']) expect(await adopt(owner, 'b')).toEqual(owner === 'a' ? { token: expect.any(Number) } : 'lost');
        expect(await release('b')).toBe('lost');
        expect(await release('a')).toBe('released');
      });

      it('past the waiters, which stay in the queue', async () => {
        await acquire('a');
        await acquire('b', { queue: true });
        expect(await adopt('c', 'a')).not.toBe('lost');
        expect((await look('b')).state).toBe('queued');
        await release('c');
        expect((await look('b')).state).toBe('held');
      });
    });
  });
}
