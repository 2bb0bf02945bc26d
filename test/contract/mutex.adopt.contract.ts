import type { AdoptReply } from '../../lib/core/store/lease-driver.js';
import { eventually } from '../../lib/testing/store/eventually.js';
import { driverRequests, tokenOf } from './driver-requests.js';
import { type MakeStore, SHORT_LEASE, where } from './open-locks.js';

/** A key that changes its owner, and is free at no time. */
export function adoptContract(makeStore: MakeStore): void {
  where(makeStore, 'adopt', () => {
    describe('the driver gives a key from its owner to another one', () => {
      const { key, newDriver, acquire, renewAll, release, look } = driverRequests(makeStore);
      const adopt = (owner: string, from: string, ttl = 20_000): Promise<AdoptReply> =>
        newDriver().adopt!({ key: key(), owner, from, ttl, tokens: 1 });
      const adoptedToken = async (...args: Parameters<typeof adopt>) => ((await adopt(...args)) as { token: number }).token;

      it('who has it for as long as it asks for, and the old one has it no more (G5)', async () => {
        await acquire('a', { ttl: 60_000 });
        expect(await adopt('b', 'a')).toEqual({ token: expect.any(Number) });
        expect(await look('b')).toMatchObject({ state: 'held', holder: 'b' });
        expect((await look('b')).remaining).toBeLessThanOrEqual(20_000);
        expect((await look('b')).remaining).toBeGreaterThan(10_000);
        expect(await release('a')).toBe('lost');
        expect(await renewAll({ owner: 'a', ttl: 60_000 })).toEqual(['lost']);
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
        const first = await tokenOf(acquire('a', { tokens: reserved }));
        const second = await adoptedToken('b', 'a');
        expect(second).toBeGreaterThanOrEqual(first + reserved);
        const third = await adoptedToken('c', 'b');
        expect(third).toBeGreaterThan(second);
        await release('c');
        expect(await tokenOf(acquire('d'))).toBeGreaterThan(third);
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
        await release('a', 60_000);
        expect(await adopt('b', 'a')).toBe('lost');
      });

      it('who asks again, because the reply was lost: it has it, no shorter than before, with a token that is no smaller (G6)', async () => {
        await acquire('a');
        const first = await adoptedToken('b', 'a', 60_000);
        expect(await adoptedToken('b', 'a')).toBeGreaterThanOrEqual(first);
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
