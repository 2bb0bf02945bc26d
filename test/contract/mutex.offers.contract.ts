import type { AcquireRequest } from '../../lib/core/store/lease-driver.js';
import { driverRequests, tokenOf } from './driver-requests.js';
import { OFFER } from './in-time.js';
import type { Kind } from './kinds.js';
import { type MakeStore, where } from './open-locks.js';

/** How long a key stays taken that is offered to a waiter, and then taken by it. */
export function offersContract(makeStore: MakeStore, kind: Kind): void {
  describe('the driver offers a key', () => {
    const { acquire, release, remaining } = driverRequests(makeStore, kind);
    const ask = (ttl: number) => acquire('b', { ttl, queue: true });

    /** The owner a releases, and b waits for a lease of so many milliseconds. @returns when. */
    async function offered(queuedFor: number): Promise<number> {
      await acquire('a');
      await ask(queuedFor);
      const start = performance.now();
      await release('a');
      return start;
    }

    for (const [ttl, length] of [
      [20_000, OFFER],
      [200, 200],
    ] as const)
      it(`to one who wants it for ${ttl} ms for ${length} ms`, async () => {
        const start = await offered(ttl);
        const left = await remaining('b');
        expect(left).toBeLessThanOrEqual(length);
        expect(performance.now() + Math.max(0, left)).toBeGreaterThan(start + length - 5);
      });

    for (const [queuedFor, ttl] of [
      [200, 200],
      [20_000, 200],
      [200, 20_000],
    ] as const)
      it(`to one who queues for ${queuedFor} ms, which has it for ${ttl} ms when it takes it for so long`, async () => {
        const start = await offered(queuedFor);
        expect(await ask(ttl)).toMatchObject({ granted: true });
        const left = await remaining('b');
        expect(performance.now() + Math.max(0, left)).toBeGreaterThan(start + ttl - 5);
        // A store that cannot tell an offer from a lease lets it run out: to make it shorter would be to shorten leases.
        expect(left).toBeLessThanOrEqual(Math.max(ttl, Math.min(queuedFor, OFFER)));
      });

    for (const ttl of [20_000, 900])
      it(`whose end no late request of a shorter lease brings nearer, once it is taken for ${ttl} ms (G2)`, async () => {
        const start = await offered(ttl);
        await ask(ttl);
        await ask(100);
        const left = await remaining('b');
        expect(performance.now() + Math.max(0, left)).toBeGreaterThan(start + ttl - 5);
      });
  });
}

/** More tokens for a process that keeps a key, while nobody else wants it. */
export function extendContract(makeStore: MakeStore): void {
  where(makeStore, 'extend', () => {
    describe('the driver extends a tenure', () => {
      const { key, driver, acquire, release, leave, look } = driverRequests(makeStore);
      const extend = (owner: string, ttl = 20_000) => driver().extend!({ key: key(), owner, ttl, tokens: 5 });

      it('with tokens beyond all that were reserved, and before all that will be', async () => {
        const reserved = 2_000_000;
        const first = await tokenOf(acquire('a', { tokens: reserved }));
        const { token } = (await extend('a')) as { token: number };
        expect(token).toBeGreaterThanOrEqual(first + reserved);
        expect(Number.isSafeInteger(token)).toBe(true);
        expect(await look('a')).toMatchObject({ state: 'held', token: token + 4 });
        await release('a');
        expect(await tokenOf(acquire('b'))).toBeGreaterThan(token + 4);
      });

      it('to a later end, never to a nearer one', async () => {
        await acquire('a', { ttl: 30_000 });
        await extend('a', 100);
        expect((await look('a')).remaining).toBeGreaterThan(20_000);
        await extend('a', 60_000);
        expect((await look('a')).remaining).toBeGreaterThan(30_000);
      });

      it('without more tokens while others queue', async () => {
        const first = await tokenOf(acquire('a', { ttl: 5_000 }));
        await acquire('b', { queue: true });
        expect(await extend('a')).toBe('wanted');
        expect(await look('a')).toMatchObject({ state: 'held', token: first });
        expect((await look('a')).remaining).toBeGreaterThan(10_000);
        await leave('b');
        expect(await extend('a')).toEqual({ token: expect.any(Number) });
      });

      it('for its owner only, and not when it is over', async () => {
        expect(await extend('a')).toBe('lost');
        expect((await look('a')).state).toBe('free');
        await acquire('a');
        expect(await extend('b')).toBe('lost');
        await release('a', 20_000);
        expect(await extend('a', 60_000)).toBe('lost');
        expect((await look('a')).remaining).toBeLessThanOrEqual(20_000);
      });
    });
  });
}

/** A request that queues again gives up what its process had. */
export function yieldsContract(makeStore: MakeStore): void {
  describe('the driver says of the owner that a request gives up for', () => {
    const { key, newDriver } = driverRequests(makeStore);
    const acquire = (owner: string, request: Partial<AcquireRequest> = {}) =>
      newDriver().acquire({ key: key(), owner, ttl: 20_000, tokens: 1, queue: true, ...request });

    it('nothing where none is named', async () => {
      expect((await acquire('a')).yielded).toBeUndefined();
      expect((await acquire('b')).yielded).toBeUndefined();
    });

    it('that it had the key, whether that is granted or goes to others', async () => {
      await acquire('a');
      expect(await acquire('b', { yields: 'a' })).toMatchObject({ granted: true, yielded: 'released' });
      await acquire('c');
      expect(await acquire('d', { yields: 'b' })).toMatchObject({ granted: false, holder: 'c', yielded: 'released' });
    });

    it('that it had it no more, whether that is free, queued for or taken', async () => {
      expect(await acquire('a', { yields: 'gone' })).toMatchObject({ granted: true, yielded: 'lost' });
      expect(await acquire('b', { yields: 'gone' })).toMatchObject({ granted: false, holder: 'a', yielded: 'lost' });
      expect(await acquire('c', { yields: 'gone', queue: false })).toMatchObject({ granted: false, holder: 'a', yielded: 'lost' });
    });
  });
}
