import { eventually } from '../../lib/testing/store/eventually.js';
import { driverRequests, GRANTED, TAKEN, tokenOf } from './driver-requests.js';
import { itInTime } from './in-time.js';
import { sideOf } from './kinds.js';
import { locksOpener, type MakeStore, SHORT_LEASE, where } from './open-locks.js';
import { timed } from '../support/rejection.js';

/** The promises of the drivers of a read/write lock, beyond those of a mutex: that contract is run over the write lock, too. */
export function readWriteDriverContract(makeStore: MakeStore): void {
  describe('the drivers', () => {
    const requests = driverRequests(makeStore, sideOf('read'));
    const { setUp, acquire: read, renewAll, release, leave, stateOf, states, remaining } = requests;
    const writers = locksOpener(makeStore, sideOf('write'));
    const offering = (title: string, run: () => Promise<void>) => itInTime(title, setUp, run);

    const write: typeof read = (owner, request) =>
      writers.driver(requests.locks()).acquire({ key: requests.key(), owner, ttl: 20_000, tokens: 1, queue: false, ...request });
    const asks = { read, write };
    const beside = (writer: string) => ({ share: { count: 1, permits: Infinity, rank: 0, beside: writer } as const });

    describe('G2 many readers or one writer', () => {
      it('readers together, and no writer with them', async () => {
        for (const reader of ['a', 'b', 'c']) expect(await read(reader)).toMatchObject(GRANTED);
        expect(await write('w')).toMatchObject(TAKEN);
        for (const reader of ['a', 'b']) await release(reader);
        expect(await write('w')).toMatchObject({ granted: false, holder: 'c', ahead: 0 });
        await release('c');
        expect(await write('w')).toMatchObject(GRANTED);
      });

      it('each reader’s lease runs out alone', async () => {
        await read('short', { ttl: SHORT_LEASE });
        await read('long');
        await eventually(async () => (await stateOf('short')) !== 'held');
        expect(await renewAll({ owner: 'short', ttl: 20_000 }, { owner: 'long', ttl: 30_000 })).toEqual(['lost', 'renewed']);
        expect(await release('short')).toBe('lost');
        expect(await write('w')).toMatchObject({ granted: false, holder: 'long' });
        await release('long');
        expect(await write('w')).toMatchObject(GRANTED);
      });

      it('says how long to wait: a writer for the last reader, a reader for the writer', async () => {
        await read('a', { ttl: 10_000 });
        await read('b', { ttl: 60_000 });
        await read('c', { ttl: 20_000 });
        const reply = await write('w');
        expect(reply).toMatchObject({ granted: false, holder: expect.stringMatching(/^[abc]$/) as string });
        expect((reply as { remaining: number }).remaining).toBeGreaterThan(50_000);
        for (const reader of ['a', 'b', 'c']) await release(reader);
        await write('w', { ttl: 30_000 });
        const waits = await read('a');
        expect(waits).toMatchObject({ holder: 'w' });
        expect((waits as { remaining: number }).remaining).toBeGreaterThan(20_000);
      });
    });

    describe('G2 fencing tokens', () => {
      it('grow with every write, and readers get that of the last one', async () => {
        // One of several servers may have given a larger one to the last write: a reader may get that.
        const isOneServer = !makeStore.without?.includes('oneServer');
        let largest = 0;
        const expectLast = async (reply: ReturnType<typeof read>): Promise<void> => {
          const token = await tokenOf(reply);
          if (isOneServer) expect(token).toBe(largest);
          else expect(token).toBeGreaterThanOrEqual(largest);
          largest = token;
        };
        largest = await tokenOf(write('w'));
        await release('w');
        await expectLast(read('a'));
        await expectLast(read('b'));
        for (const reader of ['a', 'b']) await release(reader);
        await expectLast(read('c'));
        await release('c');
        const second = await tokenOf(write('v'));
        expect(second).toBeGreaterThan(largest);
        largest = second;
        await expectLast(read('d', beside('v')));
        for (const owner of ['v', 'd']) await release(owner);
        const raised = await tokenOf(read('e', { floor: second + 2_000_000 }));
        expect(raised).toBeGreaterThanOrEqual(second + 2_000_000);
        largest = raised;
        await expectLast(read('f'));
      });

      where(makeStore, 'oneServer', () => {
        it('of readers before the first write are the same, and smaller than its own', async () => {
          const [a, b] = [await tokenOf(read('a')), await tokenOf(read('b'))];
          expect(a).toBe(b);
          for (const reader of ['a', 'b']) await release(reader);
          expect(await tokenOf(write('w'))).toBeGreaterThan(a);
        });
      });
    });

    describe('lets the writer itself read', () => {
      it('before all waiters, but no other reader', async () => {
        await write('w');
        await write('v', { queue: true });
        await read('a', { queue: true });
        expect(await read('own', beside('w'))).toMatchObject(GRANTED);
        expect(await read('b', { queue: true })).toMatchObject({ granted: false, ahead: 2 });
        expect(await read('c', beside('v'))).toMatchObject(TAKEN);
      });

      where(makeStore, 'oneServer', () => {
        offering('and keep the read lock: then other readers come, and no writer', async () => {
          await write('w');
          await read('own', beside('w'));
          await read('a', { queue: true });
          await write('v', { queue: true });
          expect(await release('w')).toBe('released');
          expect(await states('own', 'a', 'v')).toEqual(['held', 'held', 'queued']);
          expect(await read('a')).toMatchObject(GRANTED);
          for (const reader of ['own', 'a']) await release(reader);
          expect(await stateOf('v')).toBe('held');
        });
      });

      it('also when its write lease runs out: the read lease keeps other writers out', async () => {
        await write('w', { ttl: SHORT_LEASE });
        await read('own', beside('w'));
        await eventually(async () => (await stateOf('w')) !== 'held');
        expect(await write('v')).toMatchObject({ granted: false, holder: 'own' });
        expect(await read('a')).toMatchObject(GRANTED);
      });
    });

    describe('serves waiters', () => {
      const join = async (...names: string[]) => {
        for (const name of names) expect(await (name.startsWith('r') ? read : write)(name, { queue: true })).toMatchObject(TAKEN);
      };

      where(makeStore, 'oneServer', () => {
        offering('in their order: readers in a row together, each writer alone', async () => {
          await write('w0');
          await join('r1', 'r2', 'w1', 'r3', 'r4', 'w2');
          await release('w0');
          expect(await states('r1', 'r2', 'w1', 'r3', 'r4', 'w2')).toEqual(['held', 'held', 'queued', 'queued', 'queued', 'queued']);
          await release('r2');
          expect(await stateOf('w1')).toBe('queued');
          await release('r1');
          expect(await states('w1', 'r3')).toEqual(['held', 'queued']);
          await release('w1');
          expect(await states('r3', 'r4', 'w2')).toEqual(['held', 'held', 'queued']);
          for (const reader of ['r3', 'r4']) await leave(reader);
          expect(await stateOf('w2')).toBe('held');
        });
      });

      offering('before newcomers: no reader passes a waiting writer', async () => {
        await read('a');
        await join('w1');
        expect(await read('b')).toMatchObject({ granted: false, holder: 'a' });
        expect(await read('b', { queue: true })).toMatchObject({ granted: false, ahead: 1 });
        await release('a');
        expect(await states('w1', 'b')).toEqual(['held', 'queued']);
      });

      where(makeStore, 'oneServer', () => {
        offering('and lets the readers behind in at once when a writer gives up', async () => {
          await read('a');
          await join('w1', 'r1', 'r2');
          await leave('w1');
          expect(await states('w1', 'r1', 'r2')).toEqual(['taken', 'held', 'held']);
        });

        const rank = (side: 'read' | 'write', of: 0 | 1) => ({
          queue: true,
          share: { count: side === 'read' ? 1 : Infinity, permits: Infinity, rank: of },
        });
        const inRanks = async (first: 'read' | 'write', last: 'read' | 'write') => {
          await write('w0');
          await asks[last]('last', rank(last, 1));
          await asks[first]('first', rank(first, 0));
          await asks[first]('second', rank(first, 0));
          expect(await asks[last]('last', rank(last, 1))).toMatchObject({ ahead: 2 });
          await release('w0');
          expect(await states('first', 'last')).toEqual(['held', 'queued']);
          await release('first');
          expect(await states('second', 'last')).toEqual(['held', 'queued']);
          await release('second');
          expect(await stateOf('last')).toBe('held');
        };
        offering('with the lower rank first, however late it comes: read before write', () => inRanks('read', 'write'));
        offering('with the lower rank first, however late it comes: write before read', () => inRanks('write', 'read'));
      });

      it('past a higher rank, where a newcomer has a lower one and there is room', async () => {
        await read('a');
        await write('w1', { queue: true, share: { count: Infinity, permits: Infinity, rank: 1 } });
        expect(await read('b')).toMatchObject(GRANTED);
        expect(await write('v')).toMatchObject(TAKEN);
      });
    });

    describe('G6 is safe to repeat', () => {
      it('a reader’s acquire: one hold, no shorter than before', async () => {
        await read('a', { ttl: 60_000 });
        await read('a', { ttl: 5_000 });
        expect(await remaining('a')).toBeGreaterThan(30_000);
        expect(await release('a')).toBe('released');
        expect(await release('a')).toBe('lost');
        expect(await write('w')).toMatchObject(GRANTED);
      });

      it('a release: no other’s hold goes with it', async () => {
        await read('a');
        await read('b');
        await release('a');
        await release('a');
        await leave('a');
        expect(await write('w')).toMatchObject({ granted: false, holder: 'b' });
      });

      it('a reader’s release that keeps: writers wait to the end of it, readers do not', async () => {
        await read('a');
        for (const keepFor of [10_000, 60_000]) expect(await release('a', keepFor)).toBe('released');
        expect(await renewAll({ owner: 'a', ttl: 60_000 })).toEqual(['lost']);
        await leave('a');
        expect(await write('w')).toMatchObject(TAKEN);
        expect(await remaining('a')).toBeLessThanOrEqual(10_000);
        expect(await read('b')).toMatchObject(GRANTED);
        setUp();
        const { elapsed } = await timed(async () => {
          await read('a');
          await release('a', SHORT_LEASE);
          await eventually(async () => (await write('w')).granted);
        });
        expect(elapsed).toBeGreaterThan(SHORT_LEASE - 5);
        expect(await release('a')).toBe('lost');
      });

      it('a writer’s release that keeps: everybody waits, and the writer’s own reader goes on', async () => {
        await write('w');
        await read('own', beside('w'));
        await release('w', 10_000);
        expect(await states('own')).toEqual(['held']);
        expect(await read('a')).toMatchObject(TAKEN);
        expect(await write('v')).toMatchObject(TAKEN);
      });
    });
  });
}
