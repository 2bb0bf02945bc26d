import { type AcquireOptions, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, where } from './open-locks.js';
import { rejection } from './rejection.js';
import { SLACK } from '../support/time.js';

/** So long between two looks of its own that only a wake-up explains a turn that comes soon. */
const woken = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

export function handOverContract(makeStore: MakeStore, kind: Kind): void {
  describe('G8 a waiter proceeds', () => {
    const { open, newKey, driver } = locksOpener(makeStore, kind);
    let key: string;

    beforeEach(() => (key = newKey()));

    /** One that waits in Locks of its own, and has its place in the queue when this resolves. */
    async function waiter(options: AcquireOptions = {}, deaf = false) {
      let place = '';
      let grantedAt = Infinity;
      const locks: Locks = open({
        misbehaving: (real) => ({
          async acquire(request) {
            const reply = await real.acquire(request);
            if (request.queue) place = request.owner;
            return reply;
          },
          ...(deaf && real.wakeUps && { wakeUps: { isOpen: true, open: () => Promise.resolve(), listen: () => () => undefined } }),
        }),
      });
      const lease = locks.acquire(key, { ...woken, ...options });
      lease.then(
        () => (grantedAt = performance.now()),
        () => undefined,
      );
      await eventually(() => place !== '');
      return { lease, owner: place, since: (start: number) => grantedAt - start };
    }

    async function expectSoon(lease: Promise<Lease>, within = SLACK): Promise<Lease> {
      const start = performance.now();
      const got = await lease;
      expect(performance.now() - start).toBeLessThan(within);
      got.assertHeld();
      return got;
    }

    it.each([false, true])('at once on a release, though it would look by itself only after a minute (fair: %p)', async (fair) => {
      const holder = await open().acquire(key, woken);
      const next = await waiter({ fair });
      await holder.release();
      const lease = await expectSoon(next.lease);
      expect(lease.fencingToken).toBeGreaterThan(holder.fencingToken!);
      expect(lease.owner).toBe(next.owner);
    });

    it.each([true, false])(
      'or not, if a listener calls its wait off as the holder’s release is told; the key is free (same keyTimeout: %p)',
      async (isSame) => {
        const locks = open();
        const holder = await locks.acquire(key, woken);
        const caller = new AbortController();
        const options = { ...woken, keyTimeout: isSame ? woken.keyTimeout : 30_000, signal: caller.signal };
        // With two who wait, tokens for hand-overs are reserved.
        const calls = [locks.acquire(key, options), locks.acquire(key, options)].map(rejection);
        locks.on('released', () => caller.abort());
        expect(await holder.release()).toBe(true);
        await Promise.all(calls);
        await eventually(async () => (await open().tryAcquire(key)) !== null);
      },
    );

    it('or not, if a listener calls its wait off as that is told; no timer of its patience stays', async () => {
      const locks = open();
      const holder = await locks.acquire(key, woken);
      const caller = new AbortController();
      locks.on('waiting', () => caller.abort());
      const before = jest.getTimerCount();
      await rejection(locks.acquire(key, { ...woken, waitTimeout: 60_000, signal: caller.signal }));
      await eventually(() => jest.getTimerCount() <= before + 1);
      await holder.release();
    });

    it('at once when the one ahead gives up, whether before its turn or in the moment of it', async () => {
      const holder = await open().acquire(key, woken);
      const callers = [new AbortController(), new AbortController()];
      const ahead = [await waiter({ signal: callers[0]!.signal }), await waiter({ signal: callers[1]!.signal })];
      const outcomes = ahead.map(({ lease }) => lease.then((granted) => granted.release()).catch((error: unknown) => error));
      const next = await waiter();
      callers[0]!.abort();
      const release = holder.release();
      callers[1]!.abort();
      await Promise.all([release, ...outcomes]);
      await expectSoon(next.lease);
    });

    where(makeStore, 'wakeUps', () => {
      it('at once also when its wake-up overtakes the reply by which it learns that it waits', async () => {
        const holder = await open().acquire(key, woken);
        const hasPlace = gate();
        const woke = gate();
        const slow = open({
          misbehaving: (real) => ({
            async acquire(request) {
              const reply = await real.acquire(request);
              if (!request.queue || reply.granted) return reply;
              hasPlace.open();
              await woke.passed;
              return reply;
            },
            wakeUps: {
              get isOpen() {
                return real.wakeUps!.isOpen;
              },
              open: (warn) => real.wakeUps!.open(warn),
              listen: (owner, wake) =>
                real.wakeUps!.listen(owner, () => {
                  wake();
                  woke.open();
                }),
            },
          }),
        });
        const lease = slow.acquire(key, woken);
        await hasPlace.passed;
        await holder.release();
        await woke.passed;
        await expectSoon(lease);
      });
    });

    it('at once when the holder closes its Locks', async () => {
      const closing = open();
      await closing.acquire(key, woken);
      const next = await waiter();
      await closing.close();
      await expectSoon(next.lease);
    });

    it('when the lease of a holder that died has run out', async () => {
      await driver().acquire({ key, owner: 'dead', ttl: 500, tokens: 1, queue: false });
      const next = await waiter();
      await expectSoon(next.lease, 500 + 1_000 + SLACK);
    });

    it('when the minHold of the one before is over', async () => {
      const start = performance.now();
      const holder = await open().acquire(key, { ...woken, minHold: 400 });
      const next = await waiter();
      await holder.release();
      const lease = await next.lease;
      expect(performance.now() - start).toBeGreaterThanOrEqual(398);
      expect(performance.now() - start).toBeLessThan(400 + 1_000 + SLACK);
      await lease.release();
    });

    it('after a second for one ahead that does not take what it is offered', async () => {
      const holder = await open().acquire(key, woken);
      const dead = { key, owner: 'dead', ttl: 60_000, tokens: 1, queue: true };
      expect(await driver().acquire(dead)).toMatchObject({ granted: false });
      const next = await waiter({ retryInterval: 100 });
      await holder.release();
      await expectSoon(next.lease, 1_000 + SLACK);
    });

    it('within two retryIntervals when its wake-up is lost', async () => {
      const holder = await open().acquire(key, woken);
      const next = await waiter({ retryInterval: 300 }, true);
      const start = performance.now();
      await holder.release();
      await next.lease;
      expect(next.since(start)).toBeLessThan(600 + SLACK);
    });
  });
}
