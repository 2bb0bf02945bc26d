import type { Locks } from '../../lib/locks.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, SHORT_LEASE } from './open-locks.js';
import { renewalBy, renewing } from './renewing.js';
import { SharedCounter } from '../support/shared-counter.js';

export function exclusionContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey, driver } = locksOpener(makeStore, kind);

  describe('G2 at most one live holder for each key', () => {
    it('loses no update of unguarded counters that 100 callers each increment, from two Locks', async () => {
      const all = [open(), open()];
      const shared = Array.from({ length: 2 }, () => ({ key: newKey(), counter: new SharedCounter() }));
      const callers = shared.flatMap(({ key, counter }) =>
        Array.from({ length: 100 }, (_, caller) =>
          all[caller % 2]!.using(key, () => counter.increment(), {
            keyTimeout: 10_000,
            waitTimeout: Infinity,
            retryInterval: 50,
            fair: caller % 5 === 0,
          }),
        ),
      );
      await Promise.all(callers);
      for (const { counter } of shared) expect(counter).toMatchObject({ value: 100, overlaps: 0 });
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
    const expectGrowing = (tokens: number[]) => expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));

    it('grow when a lease has run out, and when the Locks and their store are closed and opened again', async () => {
      const key = newKey();
      const tokens: number[] = [];
      const take = async (locks: Locks, keyTimeout: number) => {
        const lease = await locks.acquire(key, { keyTimeout, waitTimeout: 60_000 });
        expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
        tokens.push(lease.fencingToken!);
        return lease;
      };
      await (await take(open(), 60_000)).release();
      // It goes on without its renewals and its release.
      await take(open({ misbehaving: () => ({ renew: renewing(async () => 'lost'), release: async () => 'lost' }) }), SHORT_LEASE);
      const closing = open();
      await take(closing, 60_000);
      await closing.close();
      await take(open(), 60_000);
      expectGrowing(tokens);
    });
  });

  describe("G5 nobody releases or renews another's lease", () => {
    /** A lease whose key ran out at the store without its knowledge, and the one that came after. */
    async function expiredAndNext(key: string) {
      const deaf = open({ misbehaving: () => ({ renew: renewing(async () => 'renewed') }) });
      const expired = await deaf.acquire(key, { keyTimeout: SHORT_LEASE });
      const next = await open().acquire(key, { keyTimeout: 60_000, waitTimeout: 60_000 });
      return { expired, next };
    }

    it('an expired owner can neither renew nor release the next lease', async () => {
      const key = newKey();
      const { expired, next } = await expiredAndNext(key);
      expect(await renewalBy(driver(), { key, owner: expired.owner, ttl: 90_000 })).toBe('lost');
      expect(await expired.release()).toBe(false);
      const { state, remaining } = await driver().check({ key, owner: next.owner });
      expect([state, remaining <= 60_000]).toEqual(['held', true]);
      await next.renew();
      expect(await open().tryAcquire(key)).toBeNull();
    });
  });
}
