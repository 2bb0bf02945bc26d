import { LockConfigError } from '../../lib/core/model/errors.js';
import type { Lease } from '../../lib/core/model/lease.js';
import type { Locks } from '../../lib/locks.js';
import type { Lock } from '../../lib/primitives/lock.js';
import { eventually } from '../../lib/testing/store/eventually.js';
import { locksOpener, type MakeStore, SHORT_LEASE } from './open-locks.js';
import { rejection } from '../support/rejection.js';
import { renewing } from './renewing.js';

/** Each kind by the word for it that an error must have. */
const KINDS: readonly [name: string, word: string, lockOf: (locks: Locks, key: string) => Lock][] = [
  ['mutex', 'mutex', (locks, key) => locks.mutex(key)],
  ['read lock', 'read/write lock', (locks, key) => locks.readWriteLock(key).read],
  ['write lock', 'read/write lock', (locks, key) => locks.readWriteLock(key).write],
  ['semaphore', 'semaphore', (locks, key) => locks.semaphore(key, { permits: 2 })],
];
const PAIRS = KINDS.flatMap((held) => KINDS.filter(([, word]) => word !== held[1]).map((asked) => [held, asked] as const));

/** One key is one kind of lock at a time: two kinds would not keep each other out. */
export function keyKindsContract(makeStore: MakeStore): void {
  describe('a key that is used as two kinds of lock', () => {
    const { open, newKey } = locksOpener(makeStore);
    const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

    for (const [[held, heldWord, heldOf], [asked, askedWord, askedOf]] of PAIRS) {
      if (makeStore.without?.some((extra) => [held, asked].includes(extra))) continue;
      it(`is an error at once where it is a ${held} and is asked for as a ${asked}, and the holder keeps it`, async () => {
        const key = newKey();
        const lease = await heldOf(open(), key).acquire(patient);
        let calls = 0;
        const body = () => calls++;
        for (const options of [patient, { ...patient, fair: true }, { waitTimeout: 0, onTimeout: 'skip' as const }]) {
          const error = await rejection(askedOf(open(), key).using(body, options));
          expect(error).toBeInstanceOf(LockConfigError);
          for (const part of [key, heldWord, askedWord]) expect(String(error)).toContain(part);
        }
        expect(calls).toBe(0);
        await lease.renew();
        expect(await lease.release()).toBe(true);
        const next = await askedOf(open(), key).acquire({ ...patient, waitTimeout: 0 });
        expect(await next.release()).toBe(true);
      });
    }

    it('is a lost lease for a holder whose key has become another kind', async () => {
      const key = newKey();
      const deaf = open({ misbehaving: () => ({ renew: renewing(async () => 'renewed') }) });
      const lease = await deaf.mutex(key).acquire({ keyTimeout: SHORT_LEASE });
      let next: Lease | undefined;
      await eventually(async () => (next = await open().readWriteLock(key).write.acquire({ waitTimeout: 0 })) !== undefined);
      expect(await lease.release()).toBe(false);
      next!.assertHeld();
      await next!.renew();
    });
  });
}
