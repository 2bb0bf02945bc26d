import { passTime } from '../support/virtual-time.js';
import { LockAbortedError, LockConfigError, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { random } from '../support/random.js';
import { waits } from './candidates.js';
import { heldBy } from './held-by.js';
import { changing, failing, refusal } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { long, type Setting } from './setting.js';
import { SharedCounter } from '../support/shared-counter.js';

export function multiLockTakingContract(
  { open, newKey, isFree, makeStore, where }: Setting,
  remains: () => Promise<string[]> | string[],
): void {
  let locks: Locks;
  let prefix: string;
  let [a, b, c]: [string, string, string] = ['', '', ''];
  beforeEach(() => {
    locks = open({ defaults: long });
    prefix = newKey();
    [a, b, c] = [`${prefix}:a`, `${prefix}:b`, `${prefix}:c`];
  });

  const taken = async () => (await Promise.all([a, b, c].map(async (key) => ((await isFree(key)) ? '' : key.at(-1))))).join('');
  const areTaken = (keys: string) => eventually(async () => expect(await taken()).toBe(keys));

  describe('all or none', () => {
    it.each([0, 1, 2])('are taken where another one holds one of them (the one at %p): null, and nothing is kept', async (which) => {
      const held = [a, b, c][which]!;
      const holder = await open().acquire(held, long);
      expect(await locks.multiLock([a, b, c]).tryAcquire()).toBeNull();
      await areTaken(held.at(-1)!);
      expect(await rejection(locks.multiLock([a, b, c]).acquire({ waitTimeout: 50 }))).toBeInstanceOf(LockTimeoutError);
      expect(await locks.multiLock([a, b, c]).using(() => 'ran', { waitTimeout: 0, onTimeout: () => 'timed out' })).toBe('timed out');
      await areTaken(held.at(-1)!);
      await holder.release();
      expect(await locks.multiLock([a, b, c]).using(() => 'ran')).toBe('ran');
    });

    it('are free for another caller by the time the first one learns that it cannot have them all', async () => {
      const holder = await open().acquire(c, long);
      const slow = open({ misbehaving: changing('release', (send) => passTime(100).then(send)) });
      expect(await slow.multiLock([a, b, c]).tryAcquire()).toBeNull();
      await (await open().multiLock([a, b]).tryAcquire())!.release();
      expect(await rejection(slow.multiLock([a, b, c]).acquire({ waitTimeout: 50 }))).toBeInstanceOf(LockTimeoutError);
      await (await open().multiLock([a, b]).tryAcquire())!.release();
      await holder.release();
    });

    it.each([
      ['its signal', 'signal', async (caller: AbortController) => caller.abort()],
      ['stopWaiting', 'shutdown', async () => locks.stopWaiting()],
      ['close', 'shutdown', () => locks.close()],
    ])('are released where %s calls the wait off in the middle', async (_what, reason, callOff) => {
      const holder = await open().acquire(b, long);
      const caller = new AbortController();
      const waiting = rejection(locks.multiLock([a, b, c]).acquire({ waitTimeout: Infinity, signal: caller.signal }));
      await areTaken('ab');
      await callOff(caller);
      expect(await waiting).toBeInstanceOf(LockAbortedError);
      expect(await waiting).toMatchObject({ reason });
      await areTaken('b');
      await holder.release();
    });

    it('are released where a store refuses one of them', async () => {
      const refusing = open({ misbehaving: failing('acquire', Infinity, refusal) });
      const error = await rejection(locks.multiLock([a, refusing.mutex(b), c]).acquire({ waitTimeout: Infinity }));
      expect(error).toBeInstanceOf(StoreError);
      await areTaken('');
    });

    describe('between two tries', () => {
      const options = { minHold: 60_000, keyTimeout: 10_000, waitTimeout: Infinity, retryInterval: 60_000 };
      /** What cannot be kept for so long is given back, and tried again ever later: after a second and more, by the eighth time. */
      function shaky(failures = Infinity) {
        let tries = 0;
        const counting = changing('acquire', (send) => (tries++, send()));
        const renewing = failing('renew', failures);
        const opened = open({ shutdownTimeout: 20_000, misbehaving: (real) => ({ ...counting(real), ...renewing(real) }) });
        const pausing = () => eventually(() => tries >= 2 * 8, { within: 10_000 });
        return { opened, lock: opened.multiLock([a, b]), pausing };
      }
      afterEach(() => void jest.restoreAllMocks());

      it.each([
        ['their locks are being closed', 'shutdown'],
        ['the signal aborts', 'signal'],
      ])('are not waited for any more once %s', async (_when, reason) => {
        const { opened, lock, pausing } = shaky();
        const caller = new AbortController();
        const waiting = rejection(lock.acquire({ ...options, signal: caller.signal }));
        await pausing();
        if (reason === 'signal') caller.abort();
        else opened.stopWaiting();
        const { result, elapsed } = await timed(() => waiting);
        expect(result).toMatchObject({ code: 'LOCK_ABORTED', reason });
        expect(elapsed).toBeLessThan(500);
      });

      it('are waited for by a call that holds a lease, though their locks are being closed', async () => {
        const { opened, lock, pausing } = shaky(2 * 8);
        const work = opened.using(newKey(), () => lock.using(() => 'done', options), long);
        await pausing();
        opened.stopWaiting();
        expect(await work).toBe('done');
      });

      it('are not waited for longer than the wait timeout', async () => {
        // The pauses are 10, 20, 40… ms then: the one that begins after 630 ms would last for 640 ms.
        jest.spyOn(Math, 'random').mockReturnValue(0);
        const { result, elapsed } = await timed(() => rejection(shaky().lock.acquire({ ...options, waitTimeout: 700 })));
        expect(result).toBeInstanceOf(StoreError);
        expect(elapsed).toBeGreaterThanOrEqual(690);
        expect(elapsed).toBeLessThan(1_100);
      });
    });

    it('are waited for through an outage of one store, and not longer than the wait timeout', async () => {
      const lockOf = (times: number) => locks.multiLock([a, open({ misbehaving: failing('acquire', times) }).mutex(b), c]);
      await (await lockOf(5).acquire({ waitTimeout: 20_000, retryInterval: 20 })).release();
      const { result, elapsed } = await timed(() => rejection(lockOf(Infinity).acquire({ waitTimeout: 200, retryInterval: 20 })));
      expect(result).toBeInstanceOf(StoreError);
      expect(elapsed).toBeLessThan(500);
      await areTaken('');
    });

    it('share one wait timeout (G9)', async () => {
      const holders = await Promise.all([a, b, c].map((key) => open().acquire(key, long)));
      const waiting = timed(() => rejection(locks.multiLock([a, b, c]).acquire({ waitTimeout: 600 })));
      await passTime(400);
      await holders[0]!.release();
      const { result, elapsed } = await waiting;
      expect(result).toBeInstanceOf(LockTimeoutError);
      expect(elapsed).toBeGreaterThanOrEqual(590);
      // Each for itself would wait for 1,000 ms.
      expect(elapsed).toBeLessThan(700);
      await areTaken('bc');
    });

    it('leave nothing behind, however it ended (G7)', async () => {
      const holder = await open().acquire(c, long);
      for (let times = 0; times < 3; times++) {
        expect(await locks.multiLock([a, b, c]).tryAcquire()).toBeNull();
        await rejection(locks.multiLock([a, b, c]).acquire({ waitTimeout: 20 }));
      }
      await holder.release();
      await locks.multiLock([a, b, c]).using(() => undefined);
      await eventually(async () => {
        expect(heldBy(locks)).toBe(0);
        expect((await remains()).filter((entry) => entry.includes(prefix))).toEqual([]);
      });
    });
  });

  describe('whatever the order in which they are given,', () => {
    it('two multi-locks never wait for each other', async () => {
      const counters = { [a]: new SharedCounter(), [b]: new SharedCounter(), [c]: new SharedCounter() };
      const others = [locks, open({ defaults: long }), open({ defaults: long })];
      let sections = 0;
      const work = async (index: number) => {
        for (let round = 0; round < 12; round++) {
          const keys = [a, b, c].sort(() => random() - 0.5).slice(0, 1 + Math.floor(random() * 3));
          await others[index % 3]!.multiLock(keys).using(() => Promise.all(keys.map((key) => counters[key]!.increment())), {
            waitTimeout: 15_000,
            fair: index % 2 === 0,
          });
          sections += keys.length;
        }
      };
      await Promise.all(Array.from({ length: 6 }, (_, index) => work(index)));
      const all = Object.values(counters);
      expect(all.map(({ overlaps }) => overlaps)).toEqual([0, 0, 0]);
      expect(all.reduce((sum, { value }) => sum + value, 0)).toBe(sections);
    });

    it('they are taken in the order of their keys, over several stores too', async () => {
      const other = open({ defaults: long, namespace: `${prefix}:` });
      const order: string[] = [];
      for (const each of [locks, other]) each.on('acquired', ({ key }) => order.push(key));
      const lease = await locks.multiLock([c, other.mutex('b'), a]).acquire();
      expect(order).toEqual([a, b, c]);
      expect(lease.key).toBe([a, b, c].join(', '));
      expect(lease.leases.map(({ key }) => key)).toEqual([a, b, c]);
    });
  });

  describe('is made of', () => {
    where('semaphore', () => {
      it('keys and locks of every kind', async () => {
        const reader = await open().readWriteLock(b).read.acquire(long);
        const permit = await open().semaphore(c, { permits: 2 }).acquire(long);
        const lock = locks.multiLock([a, locks.readWriteLock(b).read, locks.semaphore(c, { permits: 2 })]);
        const lease = await lock.acquire({ waitTimeout: 0 });
        expect(lease.leases).toHaveLength(3);
        expect(await lock.tryAcquire()).toBeNull();
        await lease.release();
        expect(await locks.multiLock([a, locks.readWriteLock(b).write]).tryAcquire()).toBeNull();
        await Promise.all([reader.release(), permit.release()]);
      });
    });

    it.each([
      ['a key', () => [a, a, b]],
      ['a key and its mutex', () => [b, locks.mutex(a), a]],
      ['a multi-lock of it', () => [locks.multiLock([b, a]), a]],
    ])('the same lock once, if it is given twice: %s', async (_what, given) => {
      const lease = await locks.multiLock(given()).acquire({ waitTimeout: 0 });
      expect(lease.key).toBe(`${a}, ${b}`);
      await lease.release();
    });

    it('the same lock once, if it is of two Locks of one store', async () => {
      const store = makeStore();
      const [one, other] = [new Locks(store, { logger: false }), new Locks(store, { logger: false })];
      const lease = await one.multiLock([a, other.mutex(a), other.mutex(b)]).acquire({ waitTimeout: 0 });
      expect(lease.key).toBe(`${a}, ${b}`);
      await Promise.all([lease.release(), one.close(), other.close()]);
    });

    it.each([
      ['nothing', () => []],
      ['no list', () => 'a' as unknown as string[]],
      ['a key that is wrong', () => [a, '']],
      ['what is no lock', () => [a, {} as unknown as string]],
      ['both sides of one read/write lock', () => [locks.readWriteLock(a).read, locks.readWriteLock(a).write]],
      ['different shares of one semaphore', () => [1, 2].map((count) => locks.semaphore(a, { permits: 3, count }))],
    ])('neither %s', (_what, given) => {
      expect(() => locks.multiLock(given())).toThrow(LockConfigError);
    });
  });

  it('waits in its queues in their order with fair, for each key', async () => {
    const holder = await open().acquire(b, long);
    const order: string[] = [];
    const stand = async (name: string) => {
      const own = open({ defaults: long });
      const placed = waits(own);
      const waiting = own.multiLock([b, c]).using(() => order.push(name), { fair: true, waitTimeout: Infinity });
      await placed;
      return { waiting };
    };
    const [first, second] = [await stand('first'), await stand('second')];
    await holder.release();
    await Promise.all([first.waiting, second.waiting]);
    expect(order).toEqual(['first', 'second']);
  });
}
