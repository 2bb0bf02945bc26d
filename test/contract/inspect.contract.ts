import type { Lease } from '../../lib/core/model/lease.js';
import { LockLostError } from '../../lib/core/model/errors.js';
import type { KeyReport } from '../../lib/core/model/key-report.js';
import type { Locks } from '../../lib/locks.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { type DriverExtra, locksOpener, type MakeStore, where } from './open-locks.js';
import { rejection } from '../support/rejection.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** All that operators see and may do, by two Locks: one holds, one looks. */
export function inspectContract(name: string, makeStore: MakeStore): void {
  describe(`operators of ${name}`, () => {
    const { open, newKey } = locksOpener(makeStore);
    let locks: Locks;
    let others: Locks;
    let key: string;
    const itHas = (extra: DriverExtra, title: string, test: () => Promise<void>): void => where(makeStore, extra, () => it(title, test));
    /** Questions and orders from one process to another. */
    const itTells = (title: string, test: () => Promise<void>): void => where(makeStore, 'bus', () => it(title, test));
    const until = (isSo: (report: KeyReport) => boolean) =>
      eventually(async () => {
        const report = await others.inspect(key);
        return isSo(report) && report;
      }) as Promise<KeyReport>;

    beforeEach(() => {
      [locks, others] = [open({ app: 'shop' }), open({ app: 'other' })];
      // Before anything lasts in them.
      for (const { store } of [locks, others]) void store.bus?.open(() => undefined);
      key = newKey();
    });

    describe('inspect', () => {
      it('shows that a key is free', async () => {
        expect(await others.inspect(key)).toEqual({
          ...{ key, kind: 'free', at: expect.any(Date), fencingToken: null, remaining: null },
          ...{ holders: [], holderCount: 0, waiters: [], waiterCount: 0 },
        });
      });

      itTells('shows who holds a mutex, since when, doing what, and the waiters', async () => {
        const start = Date.now();
        const lease = await locks.acquire(key, { keyTimeout: 60_000, label: 'Nightly.run' });
        const waits = others.acquire(key, { ...patient, label: 'Shop.sell' });
        const report = await until(({ waiterCount, holders: [holder] }) => waiterCount === 1 && holder?.report !== undefined);
        expect(report).toMatchObject({ key, kind: 'mutex', fencingToken: lease.fencingToken, holderCount: 1 });
        const caller = { app: 'shop', pid: process.pid, report: { label: 'Nightly.run' } };
        expect(report.holders[0]).toMatchObject({ ...caller, owner: lease.owner, phase: 'held', permits: Infinity });
        // The server's clock may be a little behind, and a store knows its time to some milliseconds only.
        expect(report.holders[0]!.remaining).toBeLessThanOrEqual(61_000);
        expect(+report.holders[0]!.since!).toBeGreaterThan(start - 1_000);
        expect(+report.at - +report.holders[0]!.since!).toBeGreaterThan(-1_000);
        expect(report.waiters[0]).toMatchObject({ app: 'other', permits: Infinity, holding: [], isHeard: true });
        expect(report.waiters[0]!.report).toMatchObject([{ label: 'Shop.sell', patienceLeft: null, waiting: 1 }]);
        await lease.release();
        await (await waits).release();
      });

      itTells('shows the callers of the process of the holder', async () => {
        const lease = await locks.acquire(key, patient);
        const waits = locks.acquire(key, { ...patient, waitTimeout: 60_000, label: 'Shop.sell' });
        const report = await until(({ waiterCount }) => waiterCount === 1);
        expect(report.waiters[0]!.report).toMatchObject([{ label: 'Shop.sell', patienceLeft: expect.any(Number) }]);
        await lease.release();
        await (await waits).release();
      });

      it('shows a minHold after the release', async () => {
        const lease = await locks.acquire(key, { minHold: 60_000 });
        await lease.release();
        expect((await others.inspect(key)).holders).toMatchObject([{ owner: lease.owner, phase: 'kept' }]);
      });

      itHas('semaphore', 'shows the holders and permits of a semaphore', async () => {
        const leases = [];
        for (const count of [1, 2]) leases.push(await locks.semaphore(key, { permits: 4, count }).acquire(patient));
        const waits = others.semaphore(key, { permits: 4, count: 2 }).acquire(patient);
        const report = await until(({ waiterCount }) => waiterCount === 1);
        expect(report).toMatchObject({ kind: 'semaphore', permits: 4, holderCount: 2, waiters: [{ permits: 2 }] });
        expect(new Map(report.holders.map(({ owner, permits }) => [owner, permits]))).toEqual(
          new Map(leases.map(({ owner }, index) => [owner, index + 1])),
        );
        for (const lease of leases) await lease.release();
        await (await waits).release();
      });

      it('shows readers, and a writer that waits for them', async () => {
        const readers = await Promise.all([locks, others].map((each) => each.readWriteLock(key).read.acquire(patient)));
        const waits = others.readWriteLock(key).write.acquire(patient);
        const report = await until(({ waiterCount }) => waiterCount === 1);
        expect(report).toMatchObject({ kind: 'read/write lock', holderCount: 2, waiters: [{ permits: Infinity }] });
        expect(report.permits).toBeUndefined();
        expect(new Set(report.holders.map(({ permits }) => permits))).toEqual(new Set([1]));
        for (const lease of readers) await lease.release();
        const write = await waits;
        expect(await others.inspect(key)).toMatchObject({ holders: [{ owner: write.owner, permits: Infinity }] });
        await write.release();
      });

      itHas('countDownLatch', 'shows what is left to count down of a latch', async () => {
        await locks.countDownLatch(key).trySetCount(3);
        const waits = others.countDownLatch(key).await({ waitTimeout: Infinity });
        // A waiter that polls for a latch leaves no trace.
        const noted = makeStore.without?.includes('wakeUps') ? 0 : 1;
        const report = await until(({ waiterCount }) => waiterCount === noted);
        expect(report).toMatchObject({ kind: 'count-down latch', count: 3, holderCount: 0, remaining: expect.any(Number) });
        for (let i = 0; i < 3; i++) await locks.countDownLatch(key).countDown();
        await waits;
      });
    });

    where(makeStore, 'keys', () =>
      describe('list', () => {
        const namesOf = async (options?: Parameters<Locks['list']>[0], from = others) => {
          const names = [];
          for await (const report of from.list(options)) names.push(report.key);
          return names.sort();
        };

        it('finds what is held, what is waited for, and what is used', async () => {
          const spaced = open({ namespace: `${key}:` });
          const lease = await spaced.acquire('held', patient);
          const other = await spaced.acquire('wait{ed}', patient);
          const waits = open({ namespace: `${key}:` }).acquire('wait{ed}', patient);
          await (await spaced.acquire('free')).release();
          const hasLatches = !makeStore.without?.includes('countDownLatch');
          if (hasLatches) await spaced.countDownLatch('latch').trySetCount(1);
          key = other.key;
          await until(({ waiterCount }) => waiterCount === 1);
          const latches = hasLatches ? [other.key.replace('wait{ed}', 'latch')] : [];
          // At the same time, as each of them asks all processes what they wait for.
          const asked: [options: Parameters<Locks['list']>[0], found: unknown][] = [
            [{}, [lease.key, other.key]],
            [{ state: 'waited' }, [other.key]],
            [{ state: 'used' }, [lease.key, ...latches, other.key]],
            [{ pattern: 'h*' }, [lease.key]],
            [{ pattern: '?eld' }, [lease.key]],
            [{ pattern: '*.*' }, []],
            [{ limit: 1 }, [expect.any(String)]],
            [{ olderThan: 60_000 }, []],
          ];
          expect(await Promise.all(asked.map(([options]) => namesOf(options, spaced)))).toEqual(asked.map(([, found]) => found));
          await lease.release();
          await other.release();
          await (await waits).release();
        });

        it('finds a hundred and more, each once', async () => {
          const leases = await Promise.all(Array.from({ length: 150 }, (_, n) => locks.acquire(`${key}-${n}`, patient)));
          expect(await namesOf({ pattern: `${key}-*` })).toEqual(leases.map((lease) => lease.key).sort());
          await Promise.all(leases.map((lease) => lease.release()));
        });
      }),
    );

    describe('forceRelease', () => {
      const reason = 'stuck import';

      itTells('asks the holder, who ends its work while nobody else has the key', async () => {
        const inside: string[] = [];
        const order: string[] = [];
        const works = locks.using(key, async ({ signal }) => {
          inside.push('first');
          await eventually(() => signal.aborted);
          order.push(`${inside.length} inside`);
          expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', revoked: { by: 'jane', reason } });
          inside.pop();
          return 'done';
        });
        await until(({ holders: [holder] }) => holder?.report !== undefined);
        const next = others.using(key, () => order.push(`then ${inside.length} inside`), patient);
        const { holders } = await until(({ waiterCount }) => waiterCount === 1);
        expect(await others.forceRelease(key, { reason, by: 'jane' })).toEqual({ outcome: 'gave back', holder: holders[0]!.owner });
        expect(await works).toBe('done');
        await next;
        expect(order).toEqual(['1 inside', 'then 0 inside']);
      });

      itTells('takes the key from a holder who goes on, and tells both sides', async () => {
        const told: unknown[] = [];
        for (const each of [locks, others]) each.on('forced', ({ key: of, by, reason: why }) => told.push({ of, by, why }));
        const losses: unknown[] = [];
        locks.on('lost', (event) => losses.push(event.reason));
        const goesOn = gate();
        const call = rejection(locks.using(key, () => goesOn.passed));
        await until(({ holders: [holder] }) => holder?.report !== undefined);
        const next = others.acquire(key, patient);
        const report = await until(({ waiterCount }) => waiterCount === 1);
        const reply = await others.forceRelease(key, {
          owner: report.holders[0]!.owner,
          token: report.fencingToken!,
          reason,
          by: 'jane',
          grace: 200,
        });
        expect(reply).toEqual({ outcome: 'forced', holder: report.holders[0]!.owner });
        const lease = await next;
        expect(lease.fencingToken).toBeGreaterThan(report.fencingToken!);
        await eventually(() => losses.length > 0);
        goesOn.open();
        expect(await call).toBeInstanceOf(LockLostError);
        expect(await call).toMatchObject({ revoked: { by: 'jane', reason } });
        expect(losses).toEqual(['forced']);
        expect(told).toEqual([{ of: key, by: 'jane', why: reason }, { of: key, by: 'jane', why: reason }]); // prettier-ignore
        expect(await lease.release()).toBe(true);
      });

      it('takes it at once without a grace, and keeps everybody out for as long as is asked', async () => {
        const lease = await locks.acquire(key);
        expect(await others.forceRelease(key, { reason, grace: 0, keepFor: 60_000 })).toEqual({ outcome: 'forced', holder: lease.owner });
        await eventually(() => lease.signal.aborted);
        expect(() => lease.assertHeld()).toThrow(LockLostError);
        expect(await lease.release()).toBe(false);
        expect(await others.tryAcquire(key)).toBeNull();
        expect((await others.inspect(key)).holders).toMatchObject([{ owner: lease.owner, phase: 'kept' }]);
        expect(await others.forceRelease(key, { reason })).toMatchObject({ outcome: 'forced' });
        await (await others.acquire(key)).release();
      });

      const sharesOf = (kind: string, take: (of: Locks) => Promise<Lease>): void =>
        it(`takes a share of a ${kind}`, async () => {
          const [first, second] = [await take(locks), await take(others)];
          expect(await rejection(others.forceRelease(key, { reason }))).toMatchObject({
            code: 'LOCK_CONFIG',
            message: expect.stringContaining('2 holders'),
          });
          expect(await others.forceRelease(key, { reason, owner: first.owner, grace: 0 })).toMatchObject({ outcome: 'forced' });
          expect((await others.inspect(key)).holders.map(({ owner }) => owner)).toEqual([second.owner]);
          expect([await first.release(), await second.release()]).toEqual([false, true]);
        });
      sharesOf('read/write lock', (of) => of.readWriteLock(key).read.acquire(patient));
      where(makeStore, 'semaphore', () => sharesOf('semaphore', (of) => of.semaphore(key, { permits: 2 }).acquire(patient)));

      itHas('semaphore', 'finds one of many holders, whose lease ends after those of a hundred others', async () => {
        const take = (keyTimeout: number) => locks.semaphore(key, { permits: 200 }).acquire({ ...patient, keyTimeout });
        const last = await take(600_000);
        const leases = await Promise.all(Array.from({ length: 120 }, () => take(60_000)));
        expect((await others.inspect(key)).holderCount).toBe(121);
        expect(await others.forceRelease(key, { reason, owner: last.owner, grace: 300 })).toEqual({
          outcome: 'forced',
          holder: last.owner,
        });
        expect(await last.release()).toBe(false);
        expect(new Set(await Promise.all(leases.map((lease) => lease.release())))).toEqual(new Set([true]));
      });

      it('leaves a key alone that somebody else has by now, or another caller of the same process, or nobody', async () => {
        const lease = await locks.acquire(key, patient);
        const { fencingToken } = await others.inspect(key);
        expect(await others.forceRelease(key, { reason, owner: 'shop@pod:1:other' })).toEqual({ outcome: 'changed', holder: lease.owner });
        expect(await others.forceRelease(key, { reason, token: fencingToken! - 1 })).toEqual({ outcome: 'changed', holder: lease.owner });
        expect(lease.signal.aborted).toBe(false);
        expect(await lease.release()).toBe(true);
        expect(await others.forceRelease(key, { reason })).toEqual({ outcome: 'changed', holder: null });
      });

      it('takes away in one step: from this owner, and by this token', async () => {
        const { inspector } = others.store;
        const lease = await locks.acquire(key, patient);
        const { fencingToken } = await others.inspect(key);
        const from = (owner: string, token?: number) => inspector!.seize({ key, kind: 'mutex', owner, phase: 'held', token, keepFor: 0 });
        expect(await from('shop@pod:1:other')).toBe(false);
        expect(await from(lease.owner, fencingToken! + 1)).toBe(false);
        await lease.renew();
        expect(await from(lease.owner, fencingToken!)).toBe(true);
        expect(await rejection(lease.renew())).toBeInstanceOf(LockLostError);
      });
    });
  });
}
