import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';

/** How long a key stays taken that is offered to a waiter, and then taken by it. */
export function offersContract(makeStore: MakeStore, kind: Kind): void {
  describe('the driver offers a key', () => {
    const { newKey, driver: newDriver } = locksOpener(makeStore, kind);

    /** Of a, who releases, to b, who waits for a lease of so many milliseconds. */
    async function offered(queuedFor: number) {
      const driver = newDriver();
      const key = newKey();
      const acquire = (owner: string, ttl: number) => driver.acquire({ key, owner, ttl, tokens: 1, queue: true });
      await acquire('a', 20_000);
      await acquire('b', queuedFor);
      await driver.release({ key, owner: 'a', keepFor: 0 });
      return { acquire, remaining: async () => (await driver.check({ key, owner: 'b' })).remaining };
    }

    it.each([
      [20_000, 1_000],
      [200, 200],
    ])('to one who wants it for %d ms for %d ms', async (ttl, longest) => {
      const { remaining } = await offered(ttl);
      const left = await remaining();
      expect(left).toBeGreaterThan(longest - 190);
      expect(left).toBeLessThanOrEqual(longest);
    });

    it.each([
      [200, 200],
      [20_000, 200],
      [200, 20_000],
    ])('to one who queues for %d ms, which has it for %d ms when it takes it for so long', async (queuedFor, ttl) => {
      const { acquire, remaining } = await offered(queuedFor);
      expect(await acquire('b', ttl)).toMatchObject({ granted: true });
      const left = await remaining();
      expect(left).toBeGreaterThan(ttl - 190);
      // A store that cannot tell an offer from a lease lets it run out: to make it shorter would be to shorten leases.
      expect(left).toBeLessThanOrEqual(Math.max(ttl, Math.min(queuedFor, 1_000)));
    });

    it('whose end no repeated request brings nearer, once it is taken', async () => {
      const { acquire, remaining } = await offered(20_000);
      await acquire('b', 20_000);
      await acquire('b', 200);
      expect(await remaining()).toBeGreaterThan(10_000);
    });

    it('whose end no late request of a shorter lease brings nearer, also where as much is left as of an offer (G2)', async () => {
      const { acquire, remaining } = await offered(900);
      await acquire('b', 900);
      await acquire('b', 100);
      expect(await remaining()).toBeGreaterThan(400);
    });
  });
}
