import type { Locks } from '../../lib/locks.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, SHORT_LEASE } from './open-locks.js';
import { renewing } from './renewing.js';
import { SharedCounter } from '../support/shared-counter.js';

export function exclusionContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey } = locksOpener(makeStore, kind);

  it('G2 at most one live holder for each key loses no update of unguarded counters that 100 callers each increment, from two Locks', async () => {
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

  it('G2 at most one live holder for each key, by different Locks, kinds of call and namespaces', async () => {
    const key = newKey();
    const [one, other] = [open({ namespace: 'shop:' }), open()];
    const lease = await one.mutex(key).acquire();
    expect(lease.key).toBe(`shop:${key}`);
    expect(await other.tryAcquire(`shop:${key}`)).toBeNull();
    expect(await one.tryAcquire(key)).toBeNull();
    await (await other.acquire(key, { waitTimeout: 0 })).release();
  });

  it('G2 fencing tokens grow when a lease has run out, and when the Locks and their store are closed and opened again', async () => {
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
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
}
