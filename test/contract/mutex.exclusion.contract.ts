import { type Lease } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { renewalBy, renewing } from './renewing.js';
import { SharedCounter } from './shared-counter.js';
import { pause } from '../support/time.js';

export function exclusionContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey, driver } = locksOpener(makeStore, kind);

  describe('G2 at most one live holder for each key', () => {
    it('loses no update of unguarded counters that 200 callers each increment, from two Locks', async () => {
      const all = [open(), open()];
      const shared = Array.from({ length: 3 }, () => ({ key: newKey(), counter: new SharedCounter() }));
      const callers = shared.flatMap(({ key, counter }) =>
        Array.from({ length: 200 }, (_, caller) =>
          all[caller % 2]!.using(key, () => counter.increment(), {
            keyTimeout: 10_000,
            waitTimeout: Infinity,
            retryInterval: 50,
            fair: caller % 5 === 0,
          }),
        ),
      );
      await Promise.all(callers);
      for (const { counter } of shared) expect(counter).toMatchObject({ value: 200, overlaps: 0 });
    });

    it('holds on to the key for as long as the body runs, not only for a keyTimeout', async () => {
      const key = newKey();
      const events: string[] = [];
      const long = open().using(
        key,
        async (lease) => {
          events.push('first in');
          await pause(1_000);
          lease.assertHeld();
          events.push('first out');
        },
        { keyTimeout: 600 },
      );
      await eventually(() => events.length === 1);
      await open().using(key, () => events.push('second in'), { waitTimeout: Infinity, retryInterval: 20 });
      await long;
      expect(events).toEqual(['first in', 'first out', 'second in']);
    });

    it('keeps holders apart that go by different Locks, kinds of call and namespaces of the same key', async () => {
      const key = newKey();
      const [one, other] = [open({ namespace: 'shop:' }), open()];
      const lease = await one.mutex(key).acquire();
      expect(lease.key).toBe(`shop:${key}`);
      expect(await other.tryAcquire(`shop:${key}`)).toBeNull();
      expect(await one.tryAcquire(key)).toBeNull();
      await (await other.acquire(key, { waitTimeout: 0 })).release();
    });
  });

  describe('G2 fencing tokens', () => {
    const tokenOf = async (key: string, end: (lease: Lease) => Promise<unknown> = (lease) => lease.release(), locks = open()) => {
      const lease = await locks.acquire(key, { keyTimeout: 100, waitTimeout: 5_000 });
      await end(lease);
      expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
      return lease.fencingToken!;
    };
    const expectGrowing = (tokens: number[]) => expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));

    it('grow when a lease has run out, and when the Locks and their store are closed and opened again', async () => {
      const key = newKey();
      const tokens = [await tokenOf(key)];
      const lost = open({ misbehaving: () => ({ renew: renewing(async () => 'lost'), release: async () => 'lost' }) });
      tokens.push(await tokenOf(key, (lease) => eventually(() => lease.remaining() === 0), lost));
      tokens.push(await tokenOf(key));
      const closing = open();
      tokens.push(await tokenOf(key, () => closing.close(), closing));
      tokens.push(await tokenOf(key));
      expectGrowing(tokens);
    });

    it('grow in the order in which the holders of a contended key got in', async () => {
      const key = newKey();
      const tokens: number[] = [];
      const all = [open(), open()];
      const callers = Array.from({ length: 40 }, (_, caller) =>
        all[caller % 2]!.using(key, (lease) => void tokens.push(lease.fencingToken!), { waitTimeout: Infinity, retryInterval: 20 }),
      );
      await Promise.all(callers);
      expect(tokens).toHaveLength(40);
      expectGrowing(tokens);
    });
  });

  describe("G5 nobody releases or renews another's lease", () => {
    /** A lease whose key ran out at the store without its knowledge, and the one that came after. */
    async function expiredAndNext(key: string) {
      const deaf = open({ misbehaving: () => ({ renew: renewing(async () => 'renewed') }) });
      const expired = await deaf.acquire(key, { keyTimeout: 200 });
      await expired.renew();
      const next = await open().acquire(key, { keyTimeout: 5_000, waitTimeout: 5_000 });
      return { expired, next };
    }

    it('an expired owner cannot release the next lease', async () => {
      const key = newKey();
      const { expired, next } = await expiredAndNext(key);
      expect(await expired.release()).toBe(false);
      await next.renew();
      expect(await open().tryAcquire(key)).toBeNull();
    });

    it('an expired owner cannot renew the next lease for itself', async () => {
      const key = newKey();
      const { expired, next } = await expiredAndNext(key);
      expect(await renewalBy(driver(), { key, owner: expired.owner, ttl: 60_000 })).toBe('lost');
      const { state, remaining } = await driver().check({ key, owner: next.owner });
      expect([state, remaining <= 5_000]).toEqual(['held', true]);
    });

    it('each holding has an owner id of its own', async () => {
      const key = newKey();
      const locks = open();
      const owners = new Set<string>();
      for (let round = 0; round < 20; round++) await locks.using(key, (lease) => void owners.add(lease.owner));
      expect(owners.size).toBe(20);
    });
  });
}
