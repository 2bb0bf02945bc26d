import '../support/virtual-time.js';
import { type KeyEvent, type KeyReport, LockConfigError, type Locks, UnsupportedPrimitiveError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { askable } from '../support/askable.js';
import { rejection } from '../support/rejection.js';
import { patient, type Setting } from './setting.js';

/** What operators may ask and do, by what the engine makes of a store that shows what it has: one holds, one looks. */
export function operatorsContract({ open, newKey }: Setting): void {
  describe('an operator', () => {
    const reason = 'stuck import';
    let locks: Locks;
    let others: Locks;
    let key: string;
    const until = (isSo: (report: KeyReport) => boolean) =>
      eventually(async () => {
        const report = await others.inspect(key);
        return isSo(report) && report;
      }) as Promise<KeyReport>;

    beforeEach(() => {
      [locks, others] = [askable(open({ app: 'shop' })), askable(open({ app: 'other' }))];
      key = newKey();
    });

    describe('that inspects', () => {
      it('shows what the chain of a caller holds, also of a multi-lock that waits for its next key', async () => {
        const keys = [`${key}-a`, `${key}-b`, `${key}-c`] as const;
        const last = await locks.acquire(keys[2], patient);
        const goesOn = gate();
        const works = others.using(keys[0], () => others.multiLock([keys[1], keys[2]]).using(() => goesOn.open(), patient), patient);
        key = keys[2];
        const report = await until(({ waiterCount }) => waiterCount === 1);
        const held = await Promise.all([keys[0], keys[1]].map((each) => others.inspect(each)));
        const expected = held.map((each) => ({ key: each.key, uuid: each.holders[0]!.owner.split(':').at(-1) }));
        expect(new Set(report.waiters[0]!.holding)).toEqual(new Set(expected));
        expect(new Set(report.waiters[0]!.report![0]!.holding)).toEqual(new Set(expected));
        await last.release();
        await Promise.all([goesOn.passed, works]);
      });

      it('takes a key as it is given to a lock, or the whole key of a lease, an error or a report: never that of another app', async () => {
        const [app, other] = [open({ namespace: 's' }), open()];
        const mine = await app.acquire(key, patient);
        const theirs = await other.acquire(`s${key}-x`, patient);
        expect(await app.inspect(key)).toMatchObject({ key: mine.key, holders: [{ owner: mine.owner }] });
        expect(await app.inspect(mine)).toMatchObject({ key: mine.key, holders: [{ owner: mine.owner }] });
        expect(await app.inspect(await app.inspect(key))).toMatchObject({ key: mine.key });
        expect(await app.inspect(`s${key}-x`)).toMatchObject({ key: `ss${key}-x`, kind: 'free' });
        expect(await app.forceRelease(`s${key}-x`, { reason: 'r', grace: 0 })).toMatchObject({ outcome: 'changed' });
        expect([await mine.release(), await theirs.release()]).toEqual([true, true]);
      });

      it('is refused when the locks are closed, and opens nothing', async () => {
        const closed = open();
        await closed.close();
        for (const call of [
          () => closed.inspect(key),
          () => closed.list()[Symbol.asyncIterator]().next(),
          () => closed.forceRelease(key, { reason: 'r' }),
        ])
          expect(await rejection(call())).toMatchObject({ code: 'LOCK_ABORTED' });
      });

      it.each(['', 'a\nb', 42 as unknown as string])('refuses %p, which is no key', async (wrong) => {
        await expect(others.inspect(wrong)).rejects.toMatchObject({
          code: 'LOCK_CONFIG',
          message: expect.not.stringContaining('undefined'),
        });
      });
    });

    it('that lists ends when its signal aborts', async () => {
      await locks.acquire(key, patient);
      const listing = others.list({ signal: AbortSignal.abort() });
      await expect(listing[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    });

    describe('that takes a key away', () => {
      it('does not pass the key on within the process of a holder who was asked', async () => {
        const proud = askable(open({ localQueue: { time: 60_000 } }));
        // Who comes second has turns for others.
        const first = await proud.acquire(key, patient);
        const works = proud.using(key, ({ signal }) => eventually(() => signal.aborted), patient);
        await first.release();
        await until(({ holders: [holder] }) => holder?.report !== undefined);
        const next = proud.acquire(key, patient);
        const { holders } = await until(({ waiterCount }) => waiterCount === 1);
        expect(await others.forceRelease(key, { reason })).toMatchObject({ outcome: 'gave back' });
        await works;
        const lease = await next;
        expect(lease.owner).not.toBe(holders[0]!.owner);
        expect(lease.signal.aborted).toBe(false);
        await lease.release();
      });

      describe('whose process has reserved tokens for its next callers', () => {
        /** The second of these callers has the key, the third one waits. */
        const three = async () => {
          const proud = askable(open({ localQueue: { time: 60_000 } }));
          const first = await proud.acquire(key, patient);
          const second = proud.acquire(key, patient);
          await first.release();
          const lease = await second;
          const next = proud.acquire(key, patient);
          const { fencingToken } = await others.inspect(key);
          expect(fencingToken).toBeGreaterThan(lease.fencingToken!);
          return { lease, next, token: lease.fencingToken! };
        };

        it.each([5_000, 0])('takes it from the caller of a token, with a grace of %d ms', async (grace) => {
          const { lease, next, token } = await three();
          lease.signal.addEventListener('abort', () => void (grace > 0 && lease.release()));
          expect(await others.forceRelease(key, { reason, token, grace })).toMatchObject({ outcome: grace > 0 ? 'gave back' : 'forced' });
          expect(lease.signal.reason).toMatchObject({ revoked: { reason } });
          await lease.release();
          await (await next).release();
        });

        it('leaves its next caller alone', async () => {
          const { lease, next, token } = await three();
          await lease.release();
          const later = await next;
          expect(later.owner).toBe(lease.owner);
          for (const grace of [5_000, 0])
            expect(await others.forceRelease(key, { reason, token, grace })).toEqual({ outcome: 'changed', holder: later.owner });
          expect(later.signal.aborted).toBe(false);
          expect(await later.release()).toBe(true);
        });

        it('does nothing if the process does not say whose token that is', async () => {
          const owner = 'shop@gone:1:uuid';
          const { granted } = await others.store.mutex.acquire({ key, owner, ttl: 60_000, tokens: 9, queue: false });
          const { fencingToken } = await others.inspect({ key });
          expect([granted, fencingToken]).toEqual([true, expect.any(Number)]);
          const forced = (token: number | null) => others.forceRelease({ key }, { reason, token: token!, grace: 0 });
          expect(await forced(fencingToken! - 1)).toEqual({ outcome: 'changed', holder: owner });
          expect(await forced(fencingToken)).toEqual({ outcome: 'forced', holder: owner });
        });
      });

      it('with keepFor does not free what another operator has taken, and keeps', async () => {
        const { owner } = await locks.acquire(key, patient);
        const take = () => others.forceRelease(key, { owner, reason, grace: 0, keepFor: 60_000 });
        expect([(await take()).outcome, (await take()).outcome]).toEqual(['forced', 'changed']);
        expect((await others.inspect(key)).holders).toMatchObject([{ owner, phase: 'kept' }]);
      });

      it('deposes a leader, who stands by again', async () => {
        const election = locks.leaderElection(key);
        const terms: string[] = [];
        const over = gate();
        const runs = election.run(async ({ signal, owner }) => {
          terms.push(owner);
          if (terms.length === 1) await eventually(() => signal.aborted);
          else over.open();
        });
        await eventually(() => election.isLeader());
        expect(await others.forceRelease(election, { reason })).toMatchObject({ outcome: 'gave back', holder: terms[0] });
        await over.passed;
        await runs;
        expect(new Set(terms).size).toBe(2);
      });

      it('refuses a latch', async () => {
        await locks.countDownLatch(key).trySetCount(1);
        expect(await rejection(others.forceRelease(key, { reason }))).toBeInstanceOf(UnsupportedPrimitiveError);
        await locks.countDownLatch(key).countDown();
      });
    });

    it('watches what happens to keys in all processes, and what has happened in them before', async () => {
      const fails = (of: Locks) => of.using(key, async () => undefined, { waitTimeout: 20, label: 'Shop.sell' }).catch(() => undefined);
      const held = await locks.acquire(key);
      await fails(others);
      await fails(others);
      const end = new AbortController();
      const seen: KeyEvent[] = [];
      const watching = (async () => {
        for await (const event of locks.watch({ pattern: `${key}*`, signal: end.signal })) seen.push(event);
      })();
      await eventually(() => seen.some(({ count }) => count === 2));
      expect(seen).toMatchObject([
        { event: 'timeout', app: 'other', pid: process.pid, key, label: 'Shop.sell', waited: expect.any(Number) },
      ]);
      expect([seen[0]!.at, seen[0]!.firstAt]).toEqual([expect.any(Date), expect.any(Date)]);
      await fails(others);
      await eventually(() => seen.some(({ count }) => count === 3));
      await others.using(`no-${key}`, async () => fails(others));
      await held.release();
      end.abort();
      await watching;
      expect(new Set(seen.map((each) => each.key))).toEqual(new Set([key]));
      await expect(others.watch({ pattern: '' })[Symbol.asyncIterator]().next()).rejects.toThrow(LockConfigError);
    });

    it('names the deadlock of two chains, through callers of their own process, too', async () => {
      const [a, b] = [`${key}-a`, `${key}-b`];
      const met = gate();
      let inside = 0;
      const meet = () => (++inside === 2 ? met.open() : met.passed);
      const options = { ...patient, waitTimeout: 90_000 };
      const cross = (of: Locks, first: string, second: string, label: string) =>
        of
          .using(first, async () => (await meet(), of.using(second, () => undefined, { ...options, label })), options)
          .catch(() => undefined);
      const calls = [cross(locks, a, b, 'Shop.sell'), cross(others, b, a, 'Shop.buy')];
      const deadlocks = await eventually(async () => {
        const found = others.waitGraph(await Promise.all([a, b].map((each) => others.inspect(each))));
        return found.length > 0 && found;
      });
      expect(deadlocks).toMatchObject([{ endsIn: expect.any(Number), advice: expect.stringContaining('multiLock') }]);
      const [{ keys, members }] = deadlocks as Exclude<typeof deadlocks, false> as [ReturnType<Locks['waitGraph']>[0]];
      expect(new Set(keys)).toEqual(new Set([a, b]));
      expect(new Set(members.map(({ app, label, holds, waitsFor }) => [app, label, holds[0], waitsFor].join(' ')))).toEqual(
        new Set([`shop Shop.sell ${a} ${b}`, `other Shop.buy ${b} ${a}`]),
      );
      await others.forceRelease(a, { reason: 'deadlock', grace: 0 });
      await Promise.all(calls);
    });
  });
}
