import type { AcquireRequest } from '../../lib/core/store/lease-driver.js';
import { eventually } from '../../lib/testing/store/eventually.js';
import { driverRequests, GRANTED, TAKEN } from './driver-requests.js';
import { itInTime } from './in-time.js';
import { semaphoreOf } from './kinds.js';
import { type MakeStore, SHORT_LEASE } from './open-locks.js';

/** The promises of the driver of a semaphore, beyond those of a mutex: that contract is run over one permit, too. */
export function semaphoreDriverContract(makeStore: MakeStore): void {
  describe('the driver', () => {
    const { setUp, acquire, renewAll, release, leave, states, remaining } = driverRequests(makeStore, semaphoreOf(3));
    const offering = (title: string, run: () => Promise<void>) => itInTime(title, setUp, run);

    /** One of three permits, unless it says otherwise. */
    const ask = (
      owner: string,
      { count = 1, permits = 3, ...request }: Partial<AcquireRequest> & { count?: number; permits?: number } = {},
    ) => acquire(owner, { share: { count, permits, rank: 0 }, ...request });

    describe('G2 never more permits than there are', () => {
      it('of many who ask together', async () => {
        const replies = await Promise.all(Array.from({ length: 50 }, (_, index) => ask(`owner ${index}`, { permits: 7 })));
        expect(replies.filter((reply) => reply.granted)).toHaveLength(7);
      });

      it('several at once: all or none', async () => {
        expect(await ask('a', { count: 2 })).toMatchObject(GRANTED);
        expect(await ask('b', { count: 2 })).toMatchObject(TAKEN);
        expect(await ask('c')).toMatchObject(GRANTED);
        expect(await ask('d')).toMatchObject({ granted: false, holder: expect.stringMatching(/^[ac]$/) as string, ahead: 0 });
        await release('a');
        expect(await ask('b', { count: 2 })).toMatchObject(GRANTED);
        expect(await ask('d')).toMatchObject(TAKEN);
      });

      it('each lease runs out alone, with all of its permits', async () => {
        await ask('short', { count: 2, ttl: SHORT_LEASE });
        await ask('long');
        await eventually(async () => (await states('short'))[0] !== 'held');
        expect(await renewAll({ owner: 'short', ttl: 20_000 }, { owner: 'long', ttl: 30_000 })).toEqual(['lost', 'renewed']);
        expect(await release('short')).toBe('lost');
        expect(await ask('next', { count: 2 })).toMatchObject(GRANTED);
        expect(await ask('more')).toMatchObject(TAKEN);
      });

      it('says how long to wait: for the first one that ends', async () => {
        await ask('a', { ttl: 60_000 });
        await ask('b', { ttl: 10_000 });
        await ask('c', { ttl: 60_000 });
        const { remaining: left } = (await ask('d')) as { remaining: number };
        expect(left).toBeGreaterThan(5_000);
        expect(left).toBeLessThanOrEqual(10_000);
      });

      it('with tokens that grow from one grant to the next', async () => {
        const tokens: number[] = [];
        for (const owner of ['a', 'b', 'c']) tokens.push(((await ask(owner)) as { token: number }).token);
        await release('a');
        tokens.push(((await ask('d')) as { token: number }).token);
        expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => x - y));
      });
    });

    describe('as many permits as the last one who asked said', () => {
      offering('more of them let waiters in at once', async () => {
        for (const owner of ['a', 'b', 'c']) await ask(owner);
        for (const owner of ['d', 'e', 'f']) expect(await ask(owner, { queue: true })).toMatchObject(TAKEN);
        expect(await ask('g', { permits: 5, queue: true })).toMatchObject({ granted: false, ahead: 1 });
        expect(await states('d', 'e', 'f', 'g')).toEqual(['held', 'held', 'queued', 'queued']);
      });

      it('more of them let the asking caller in, if nobody waits', async () => {
        for (const owner of ['a', 'b', 'c']) await ask(owner);
        expect(await ask('d', { permits: 4 })).toMatchObject(GRANTED);
        expect(await ask('e', { permits: 4 })).toMatchObject(TAKEN);
      });

      it('fewer of them leave the holders theirs, and let nobody in until it fits', async () => {
        for (const owner of ['a', 'b', 'c']) await ask(owner);
        expect(await ask('d', { permits: 1 })).toMatchObject(TAKEN);
        expect(await renewAll(...['a', 'b', 'c'].map((owner) => ({ owner, ttl: 30_000 })))).toEqual(['renewed', 'renewed', 'renewed']);
        for (const owner of ['a', 'b']) {
          await release(owner);
          expect(await ask('d', { permits: 1 })).toMatchObject(TAKEN);
        }
        await release('c');
        expect(await ask('d', { permits: 1 })).toMatchObject(GRANTED);
        expect(await ask('e', { permits: 1 })).toMatchObject(TAKEN);
      });

      offering('also where the waiters came with another number', async () => {
        for (const owner of ['a', 'b', 'c']) await ask(owner);
        await ask('d', { queue: true });
        await ask('e', { permits: 1, queue: true });
        await release('a');
        await release('b');
        expect(await states('d', 'e')).toEqual(['queued', 'queued']);
        await release('c');
        expect(await states('d', 'e')).toEqual(['held', 'queued']);
      });
    });

    describe('serves waiters', () => {
      const join = async (...wanted: [owner: string, count: number][]) => {
        for (const [owner, count] of wanted) expect(await ask(owner, { count, queue: true })).toMatchObject(TAKEN);
      };

      offering('in their order: a waiter for many is not passed by one for few', async () => {
        for (const owner of ['a', 'b', 'c']) await ask(owner);
        await join(['many', 3], ['few', 1]);
        await release('a');
        await release('b');
        expect(await ask('newcomer')).toMatchObject(TAKEN);
        expect(await states('many', 'few')).toEqual(['queued', 'queued']);
        await release('c');
        expect(await states('many', 'few')).toEqual(['held', 'queued']);
        await release('many');
        expect(await states('few')).toEqual(['held']);
      });

      offering('several in one go, as many as fit', async () => {
        await ask('all', { count: 3 });
        await join(['a', 1], ['b', 1], ['two', 2], ['c', 1]);
        await release('all');
        expect(await states('a', 'b', 'two', 'c')).toEqual(['held', 'held', 'queued', 'queued']);
        await leave('a');
        expect(await states('two', 'c')).toEqual(['held', 'queued']);
      });

      offering('and lets those behind in when a waiter for many gives up', async () => {
        await ask('a', { count: 2 });
        await join(['many', 2], ['few', 1]);
        await leave('many');
        expect(await states('few')).toEqual(['held']);
      });
    });

    describe('G6 is safe to repeat', () => {
      it('an acquire: it takes no more permits, whatever it asks for', async () => {
        await ask('a', { ttl: 60_000 });
        await ask('a', { ttl: 5_000 });
        await ask('a', { count: 3 });
        expect(await remaining('a')).toBeGreaterThan(30_000);
        expect(await ask('b', { count: 2 })).toMatchObject(GRANTED);
        expect(await ask('c')).toMatchObject(TAKEN);
      });

      it('a release and a give-up: they release no more than was taken', async () => {
        await ask('a');
        await ask('b', { count: 2 });
        expect(await release('a')).toBe('released');
        expect(await release('a')).toBe('lost');
        await leave('a');
        expect(await ask('c')).toMatchObject(GRANTED);
        expect(await ask('d')).toMatchObject(TAKEN);
      });

      it('a release that keeps: its permits stay taken to the end of it', async () => {
        await ask('a', { count: 2 });
        for (const keepFor of [10_000, 60_000]) expect(await release('a', keepFor)).toBe('released');
        expect(await remaining('a')).toBeLessThanOrEqual(10_000);
        expect(await ask('b', { count: 2 })).toMatchObject(TAKEN);
        expect(await ask('c')).toMatchObject(GRANTED);
      });
    });
  });
}
