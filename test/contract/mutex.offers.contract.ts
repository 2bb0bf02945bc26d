import type { AcquireRequest, LeaseDriver } from '../../lib/core/store/lease-driver.js';
import { OFFER } from './in-time.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, where } from './open-locks.js';

/** How long a key stays taken that is offered to a waiter, and then taken by it. */
export function offersContract(makeStore: MakeStore, kind: Kind): void {
  describe('the driver offers a key', () => {
    const { newKey, driver: newDriver } = locksOpener(makeStore, kind);

    /** The owner a releases, and b waits for a lease of so many milliseconds. */
    async function offered(queuedFor: number) {
      const driver = newDriver();
      const key = newKey();
      const acquire = (owner: string, ttl: number) => driver.acquire({ key, owner, ttl, tokens: 1, queue: true });
      await acquire('a', 20_000);
      await acquire('b', queuedFor);
      const start = performance.now();
      await driver.release({ key, owner: 'a', keepFor: 0 });
      return { start, acquire, remaining: async () => (await driver.check({ key, owner: 'b' })).remaining };
    }

    for (const [ttl, length] of [
      [20_000, OFFER],
      [200, 200],
    ] as const)
      it(`to one who wants it for ${ttl} ms for ${length} ms`, async () => {
        const { start, remaining } = await offered(ttl);
        const left = await remaining();
        expect(left).toBeLessThanOrEqual(length);
        expect(performance.now() + Math.max(0, left)).toBeGreaterThan(start + length - 5);
      });

    for (const [queuedFor, ttl] of [
      [200, 200],
      [20_000, 200],
      [200, 20_000],
    ] as const)
      it(`to one who queues for ${queuedFor} ms, which has it for ${ttl} ms when it takes it for so long`, async () => {
        const { start, acquire, remaining } = await offered(queuedFor);
        expect(await acquire('b', ttl)).toMatchObject({ granted: true });
        const left = await remaining();
        expect(performance.now() + Math.max(0, left)).toBeGreaterThan(start + ttl - 5);
        // A store that cannot tell an offer from a lease lets it run out: to make it shorter would be to shorten leases.
        expect(left).toBeLessThanOrEqual(Math.max(ttl, Math.min(queuedFor, OFFER)));
      });

    for (const ttl of [20_000, 900])
      it(`whose end no late request of a shorter lease brings nearer, once it is taken for ${ttl} ms (G2)`, async () => {
        const { start, acquire, remaining } = await offered(ttl);
        await acquire('b', ttl);
        await acquire('b', 100);
        const left = await remaining();
        expect(performance.now() + Math.max(0, left)).toBeGreaterThan(start + ttl - 5);
      });
  });
}

/** More tokens for a process that keeps a key, while nobody else wants it. */
export function extendContract(makeStore: MakeStore, kind: Kind): void {
  const { newKey, driver: newDriver } = locksOpener(makeStore, kind);

  where(makeStore, 'extend', () => {
    describe('the driver extends a tenure', () => {
      let driver: LeaseDriver;
      let key: string;

      beforeEach(() => {
        driver = newDriver();
        key = newKey();
      });
      const acquire = async (owner: string, { ttl = 20_000, tokens = 1, queue = false } = {}): Promise<number> => {
        const reply = await driver.acquire({ key, owner, ttl, tokens, queue });
        return reply.granted ? reply.token! : 0;
      };
      const extend = (owner: string, ttl = 20_000) => driver.extend!({ key, owner, ttl, tokens: 5 });
      const look = (owner = 'a') => driver.check({ key, owner });

      it('with tokens beyond all that were reserved, and before all that will be', async () => {
        const reserved = 2_000_000;
        const first = await acquire('a', { tokens: reserved });
        const { token } = (await extend('a')) as { token: number };
        expect(token).toBeGreaterThanOrEqual(first + reserved);
        expect(Number.isSafeInteger(token)).toBe(true);
        expect(await look()).toMatchObject({ state: 'held', token: token + 4 });
        await driver.release({ key, owner: 'a', keepFor: 0 });
        expect(await acquire('b')).toBeGreaterThan(token + 4);
      });

      it('to a later end, never to a nearer one', async () => {
        await acquire('a', { ttl: 30_000 });
        await extend('a', 100);
        expect((await look()).remaining).toBeGreaterThan(20_000);
        await extend('a', 60_000);
        expect((await look()).remaining).toBeGreaterThan(30_000);
      });

      it('without more tokens while others queue', async () => {
        const first = await acquire('a', { ttl: 5_000 });
        await acquire('b', { queue: true });
        expect(await extend('a')).toBe('wanted');
        expect(await look()).toMatchObject({ state: 'held', token: first });
        expect((await look()).remaining).toBeGreaterThan(10_000);
        await driver.leave({ key, owner: 'b' });
        expect(await extend('a')).toEqual({ token: expect.any(Number) });
      });

      it('for its owner only, and not when it is over', async () => {
        expect(await extend('a')).toBe('lost');
        expect((await look()).state).toBe('free');
        await acquire('a');
        expect(await extend('b')).toBe('lost');
        await driver.release({ key, owner: 'a', keepFor: 20_000 });
        expect(await extend('a', 60_000)).toBe('lost');
        expect((await look()).remaining).toBeLessThanOrEqual(20_000);
      });
    });
  });
}

/** A request that queues again gives up what its process had. */
export function yieldsContract(makeStore: MakeStore, kind: Kind): void {
  const { newKey, driver: newDriver } = locksOpener(makeStore, kind);
  let key: string;
  beforeEach(() => (key = newKey()));

  describe('the driver says of the owner that a request gives up for', () => {
    const acquire = (owner: string, request: Partial<AcquireRequest> = {}) =>
      newDriver().acquire({ key, owner, ttl: 20_000, tokens: 1, queue: true, ...request });

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
