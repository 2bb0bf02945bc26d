import { LockAbortedError, LockConfigError, LockTimeoutError, Locks, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { waits } from './candidates.js';
import { heldBy } from './held-by.js';
import { locksOpener, type MakeStore, where } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewing } from './renewing.js';
import { SharedCounter } from './shared-counter.js';
import { outage, refusal } from './store-failures.js';
import { pause } from '../support/time.js';
import { random } from '../support/random.js';

const long = { keyTimeout: 60_000, retryInterval: 60_000 };

export function multiLockTakingContract(makeStore: MakeStore, remains: () => Promise<string[]> | string[]): void {
  const { open, newKey } = locksOpener(makeStore);
  let locks: Locks;
  let prefix: string;
  let [a, b, c]: [string, string, string] = ['', '', ''];

  beforeEach(() => {
    locks = open({ defaults: long });
    prefix = newKey();
    [a, b, c] = [`${prefix}:a`, `${prefix}:b`, `${prefix}:c`];
  });

  const isTaken = async (key: string) => {
    const lease = await open().tryAcquire(key, { reentrant: false });
    await lease?.release();
    return lease === null;
  };
  const taken = async () => (await Promise.all([a, b, c].map(async (key) => ((await isTaken(key)) ? key.at(-1) : '')))).join('');
  const areTaken = (keys: string) => eventually(async () => expect(await taken()).toBe(keys));

  describe('all or none', () => {
    it('are taken and given back together', async () => {
      const lease = await locks.multiLock([c, a, b]).acquire();
      expect(await taken()).toBe('abc');
      expect(await lease.release()).toBe(true);
      expect(await taken()).toBe('');
    });

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

    it('are free for the next one when it is told that it cannot have them all', async () => {
      const holder = await open().acquire(c, long);
      const slow = open({ misbehaving: (real) => ({ release: (request) => pause(100).then(() => real.release(request)) }) });
      expect(await slow.multiLock([a, b, c]).tryAcquire()).toBeNull();
      await (await open().multiLock([a, b]).tryAcquire())!.release();
      expect(await rejection(slow.multiLock([a, b, c]).acquire({ waitTimeout: 50 }))).toBeInstanceOf(LockTimeoutError);
      await (await open().multiLock([a, b]).tryAcquire())!.release();
      await holder.release();
    });

    it('are waited for, and taken in the moment in which the last one is free', async () => {
      const holder = await open().acquire(b, long);
      const waiting = locks.multiLock([a, b, c]).acquire({ waitTimeout: Infinity });
      await areTaken('ab');
      await holder.release();
      (await waiting).assertHeld();
      await areTaken('abc');
    });

    it('are given back where the wait is called off in the middle', async () => {
      const holder = await open().acquire(b, long);
      const caller = new AbortController();
      const waiting = rejection(locks.multiLock([a, b, c]).acquire({ waitTimeout: Infinity, signal: caller.signal }));
      await areTaken('ab');
      caller.abort();
      expect(await waiting).toBeInstanceOf(LockAbortedError);
      await areTaken('b');
      await holder.release();
      await areTaken('');
    });

    it.each(['stopWaiting', 'close'] as const)('are given back where %s calls the wait off in the middle', async (how) => {
      const holder = await open().acquire(b, long);
      const waiting = rejection(locks.multiLock([a, b, c]).using(() => 'ran', { waitTimeout: Infinity }));
      await areTaken('ab');
      await locks[how]();
      expect(await waiting).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
      await areTaken('b');
      await holder.release();
    });

    it('are given back where a store refuses one of them', async () => {
      const refusing = open({ misbehaving: () => ({ acquire: () => Promise.reject(refusal()) }) });
      const error = await rejection(locks.multiLock([a, refusing.mutex(b), c]).acquire({ waitTimeout: Infinity }));
      expect(error).toBeInstanceOf(StoreError);
      await areTaken('');
    });

    it('are not waited for any more once their locks are being closed, not even between two tries', async () => {
      let tries = 0;
      const shaky = open({
        misbehaving: (real) => ({
          acquire: (request) => (tries++, real.acquire(request)),
          renew: renewing(() => Promise.reject(outage())),
        }),
      });
      // What cannot be kept for so long is given back, and tried again ever later: after a second and more, by then.
      const options = { minHold: 60_000, keyTimeout: 10_000, waitTimeout: Infinity, retryInterval: 60_000 };
      const waiting = rejection(shaky.multiLock([a, b]).acquire(options));
      await eventually(() => tries >= 2 * 8, { within: 10_000 });
      const start = performance.now();
      shaky.stopWaiting();
      expect(await waiting).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
      expect(performance.now() - start).toBeLessThan(500);
    });

    it('are waited for through an outage of one store, and not longer than patience lasts', async () => {
      let failures = 5;
      const shaky = open({
        misbehaving: (real) => ({ acquire: (request) => (failures-- > 0 ? Promise.reject(outage()) : real.acquire(request)) }),
      });
      const lock = locks.multiLock([a, shaky.mutex(b), c]);
      await (await lock.acquire({ waitTimeout: 20_000, retryInterval: 20 })).release();
      failures = Infinity;
      const start = performance.now();
      expect(await rejection(lock.acquire({ waitTimeout: 200, retryInterval: 20 }))).toBeInstanceOf(StoreError);
      expect(performance.now() - start).toBeLessThan(2_000);
      await areTaken('');
    });

    it('share one patience (G9)', async () => {
      const holders = await Promise.all([a, b, c].map((key) => open().acquire(key, long)));
      const start = performance.now();
      const waiting = rejection(locks.multiLock([a, b, c]).acquire({ waitTimeout: 600 }));
      await pause(400);
      await holders[0]!.release();
      expect(await waiting).toBeInstanceOf(LockTimeoutError);
      const took = performance.now() - start;
      expect(took).toBeGreaterThanOrEqual(590);
      // Each for itself would wait for 1,000 ms, and not know of it.
      expect(took).toBeLessThan(950);
      await areTaken('bc');
    });

    it('leave nothing behind, whatever became of them (G7)', async () => {
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
    where(makeStore, 'semaphore', () => {
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
    ])('neither %s', (_what, given) => {
      expect(() => locks.multiLock(given())).toThrow(LockConfigError);
    });

    where(makeStore, 'semaphore', () => {
      it('nor different shares of one semaphore', () => {
        const shares = [locks.semaphore(a, { permits: 3 }), locks.semaphore(a, { permits: 3, count: 2 })];
        expect(() => locks.multiLock(shares)).toThrow(LockConfigError);
      });
    });
  });

  describe('waits in turn', () => {
    it('with fair, for each key', async () => {
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
  });
}
