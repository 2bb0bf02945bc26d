import { passTime } from '../support/virtual-time.js';
import { currentLease, type Lease, LockAbortedError, LockLostError, LockTimeoutError, type Locks } from 'nestjs-distributed-lock/core';
import { begunByThen } from '../support/begun-by-then.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { held, silent } from './misbehaviour.js';
import { rejection } from '../support/rejection.js';
import { long, type Setting } from './setting.js';

export function reentrancyContract({ open, newKey, isFree, takeAway, lose }: Setting): void {
  describe('a call chain that holds a key', () => {
    let key: string;
    let locks: Locks;
    beforeEach(() => {
      key = newKey();
      locks = open();
    });

    it('takes it again, however deep, and releases it with the outermost call', async () => {
      const owners: string[] = [];
      const nest = (depth: number): Promise<void> =>
        locks.using(
          key,
          async (lease) => {
            owners.push(lease.owner);
            await passTime(1);
            if (depth > 1) await nest(depth - 1);
            expect(await isFree(key)).toBe(false);
          },
          { waitTimeout: 0 },
        );
      await nest(5);
      expect(owners).toHaveLength(5);
      expect(new Set(owners).size).toBe(1);
      expect(await isFree(key)).toBe(true);
    });

    it('goes on in work that begins with its `then`, as of a query builder', async () => {
      const found = await locks.using(key, (lease) => begunByThen(() => locks.using(key, () => currentLease()?.owner === lease.owner)));
      expect(found).toBe(true);
    });

    it('takes it again by a bare acquire, which then keeps it until it is released', async () => {
      const bare = await locks.using(key, async (outer) => {
        const inner = await locks.acquire(key, { waitTimeout: 0 });
        expect(inner).not.toBe(outer);
        expect(inner.fencingToken).toBe(outer.fencingToken);
        return inner;
      });
      bare.assertHeld();
      expect(await isFree(key)).toBe(false);
      expect(await bare.release()).toBe(true);
      expect(await isFree(key)).toBe(true);
    });

    it.each([
      ['of the call', { reentrant: false }, {}],
      ['of the Locks', {}, { reentrant: false }],
    ])('waits for itself like another caller with reentrant: false %s', async (_whose, own, defaults) => {
      const strict = open({ defaults });
      const inner = strict.using(key, () => strict.using(key, () => undefined, { waitTimeout: 20, ...own }));
      expect(await rejection(inner)).toBeInstanceOf(LockTimeoutError);
    });

    it('is shared by the siblings inside it', async () => {
      const together = gate();
      let inside = 0;
      const sibling = () =>
        locks.using(key, async () => {
          if (++inside === 2) together.open();
          await together.passed;
        });
      await locks.using(key, () => Promise.all([sibling(), sibling()]));
      expect(inside).toBe(2);
    });

    it('goes on as long as a child that outlives its parent', async () => {
      const end = gate();
      const { child } = await locks.using(key, () => ({ child: locks.using(key, (lease) => end.passed.then(() => lease.assertHeld())) }), {
        keyTimeout: 600,
      });
      await passTime(800);
      expect(await isFree(key)).toBe(false);
      end.open();
      await child;
      await eventually(() => isFree(key));
    });

    it('has ended for a child that begins after the parent’s release: it takes its own', async () => {
      const parentIsDone = gate();
      const { child, owner } = await locks.using(key, (lease) => ({
        child: parentIsDone.passed.then(() => locks.using(key, (own) => own.owner, { waitTimeout: 0 })),
        owner: lease.owner,
      }));
      const stranger = await open().acquire(key);
      parentIsDone.open();
      expect(await rejection(child)).toBeInstanceOf(LockTimeoutError);
      await stranger.release();
      const late = await locks.using(key, (lease) => lease.owner);
      expect(late).not.toBe(owner);
    });

    it('has ended while the parent’s release is under way', async () => {
      const { sent, answer, misbehaving } = held('release', 'requests');
      const slow = open({ misbehaving });
      const again = () => rejection(slow.using(key, () => 'ran', { waitTimeout: 0 })).finally(answer);
      const { child } = await slow.using(key, () => ({ child: sent.then(again) }));
      expect(await child).toBeInstanceOf(LockTimeoutError);
    });

    it('cannot take a lost lease again', async () => {
      const lostInside = locks.using(
        key,
        async ({ owner }) => {
          await takeAway({ key, owner });
          await rejection(currentLease()!.renew());
          for (const again of [locks.using(key, () => 'ran'), locks.acquire(key), locks.tryAcquire(key)]) {
            expect(await rejection(again)).toBeInstanceOf(LockLostError);
          }
          return 'checked';
        },
        { onLost: 'ignore' },
      );
      expect(await lostInside).toBe('checked');
    });

    it('does not take it again for a caller whose signal has aborted', async () => {
      const body = jest.fn();
      await locks.using(key, async (outer) => {
        const again = locks.using(key, body, { signal: AbortSignal.abort() });
        expect(await rejection(again)).toBeInstanceOf(LockAbortedError);
        outer.assertHeld();
      });
      expect(body).not.toHaveBeenCalled();
    });

    it('does not wait for the store when a caller aborts that takes it again for a longer minHold', async () => {
      const away = open({ misbehaving: silent('renew') });
      const body = jest.fn();
      const work = async (outer: Lease) => {
        const caller = new AbortController();
        const again = rejection(away.using(key, body, { minHold: 90_000, signal: caller.signal }));
        caller.abort();
        expect(await again).toBeInstanceOf(LockAbortedError);
        outer.assertHeld();
      };
      await away.using(key, work, long);
      expect(body).not.toHaveBeenCalled();
    });

    it.each([
      ['is held, too', false],
      ['has been released', true],
    ])(
      'says to each of many leases of it that they are lost, also if each is released when it aborts; the first %s',
      async (_, isReleased) => {
        const reasons: unknown[] = [];
        const call = locks.using(key, async (outer) => {
          const inner = await Promise.all(Array.from({ length: 30 }, () => locks.acquire(key, { waitTimeout: 0 })));
          for (const lease of inner)
            lease.signal.addEventListener('abort', () => {
              reasons.push(lease.signal.reason);
              void lease.release();
            });
          if (isReleased) await outer.release();
          await lose(inner[0]!);
        });
        await (isReleased ? call : rejection(call));
        expect(reasons).toEqual(Array(30).fill(expect.any(LockLostError)));
      },
    );

    it('knows its innermost lease', async () => {
      expect(currentLease()).toBeUndefined();
      await locks.using(key, async (outer) => {
        expect(currentLease()).toBe(outer);
        await locks.using(newKey(), async (inner) => {
          await passTime(1);
          expect(currentLease()).toBe(inner);
        });
        expect(currentLease()).toBe(outer);
        const bare = await locks.acquire(newKey());
        expect(currentLease()).toBe(outer);
        await bare.release();
        await outer.release();
        expect(currentLease()).toBeUndefined();
      });
      expect(currentLease()).toBeUndefined();
    });

    it('has, for a child that outlives a call, the lease that the call was inside of, and none when all have ended', async () => {
      const [innerEnds, outerEnds] = [gate(), gate()];
      const lateIn = (ends: Promise<void>) => ({ late: ends.then(() => currentLease()) });
      const { late } = await locks.using(key, async (outer) => {
        const inner = await locks.using(newKey(), (lease) => ({ lease, ...lateIn(innerEnds.passed) }));
        innerEnds.open();
        expect(await inner.late).toBe(outer);
        const again = await locks.using(key, (lease) => lease);
        expect(() => again.assertHeld()).toThrow(LockLostError);
        outer.assertHeld();
        return lateIn(outerEnds.passed);
      });
      outerEnds.open();
      expect(await late).toBeUndefined();
    });

    it('holds neither other keys nor the same key of another namespace', async () => {
      const other = open({ namespace: 'other:' });
      const leases: (Lease | null)[] = [];
      await locks.using(key, async (outer) => {
        const inner = await other.acquire(key, { waitTimeout: 0 });
        expect(inner.owner).not.toBe(outer.owner);
        leases.push(inner);
      });
      leases[0]!.assertHeld();
    });
  });
}
