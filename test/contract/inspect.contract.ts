import {
  LockConfigError,
  LockLostError,
  UnsupportedPrimitiveError,
  type KeyEvent,
  type KeyReport,
  type Locks,
} from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import { locksOpener, type MakeStore, where } from './open-locks.js';
import { rejection } from './rejection.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** What operators see and may do, by two Locks: one holds, one looks. */
export function inspectContract(name: string, makeStore: MakeStore): void {
  describe(`operators of ${name}`, () => {
    const { open, newKey } = locksOpener(makeStore);
    let locks: Locks;
    let others: Locks;
    let key: string;
    /** What a process is asked or told by another one. */
    const itTells = (title: string, test: () => Promise<void>): void => where(makeStore, 'bus', () => it(title, test));
    const until = (isSo: (report: KeyReport) => boolean) =>
      eventually(async () => {
        const report = await others.inspect(key);
        return isSo(report) && report;
      }) as Promise<KeyReport>;

    beforeEach(() => {
      [locks, others] = [open({ app: 'shop', visible: true }), open({ app: 'other', visible: true })];
      key = newKey();
    });

    describe('inspect', () => {
      it('shows that a key is free', async () => {
        expect(await others.inspect(key)).toEqual({
          ...{ key, kind: 'free', at: expect.any(Date), fencingToken: null, remaining: null },
          ...{ holders: [], holderCount: 0, waiters: [], waiterCount: 0 },
        });
      });

      itTells('shows who holds a mutex, since when, doing what, and who waits', async () => {
        const start = Date.now();
        const lease = await locks.acquire(key, { keyTimeout: 60_000, label: 'Nightly.run' });
        const waits = others.acquire(key, { ...patient, label: 'Shop.sell' });
        const report = await until(({ waiterCount, holders: [holder] }) => waiterCount === 1 && holder?.told !== undefined);
        const { uuid: _, ...parts } = { uuid: lease.owner, app: 'shop', pid: process.pid };
        expect(report).toMatchObject({ key, kind: 'mutex', fencingToken: lease.fencingToken, holderCount: 1 });
        expect(report.holders[0]).toMatchObject({
          ...parts,
          owner: lease.owner,
          phase: 'held',
          permits: Infinity,
          told: { label: 'Nightly.run' },
        });
        expect(report.holders[0]!.remaining).toBeLessThanOrEqual(60_000);
        // The clock of the server may be a little behind.
        expect(+report.holders[0]!.since!).toBeGreaterThan(start - 1_000);
        expect(+report.at - +report.holders[0]!.since!).toBeGreaterThan(-1_000);
        expect(report.waiters[0]).toMatchObject({ app: 'other', permits: Infinity, holding: [], isHeard: true });
        expect(report.waiters[0]!.told).toMatchObject([{ label: 'Shop.sell', patienceLeft: null, waiting: 1 }]);
        await lease.release();
        await (await waits).release();
      });

      itTells('shows the callers of the process of the holder', async () => {
        const lease = await locks.acquire(key, patient);
        const waits = locks.acquire(key, { ...patient, waitTimeout: 60_000, label: 'Shop.sell' });
        const report = await until(({ waiterCount }) => waiterCount === 1);
        expect(report.waiters[0]!.told).toMatchObject([{ label: 'Shop.sell', patienceLeft: expect.any(Number) }]);
        await lease.release();
        await (await waits).release();
      });

      it('shows a minHold after the release', async () => {
        const lease = await locks.acquire(key, { minHold: 60_000 });
        await lease.release();
        expect((await others.inspect(key)).holders).toMatchObject([{ owner: lease.owner, phase: 'kept' }]);
      });

      it('shows the holders and permits of a semaphore', async () => {
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

      it('shows what is left to count down of a latch', async () => {
        await locks.countDownLatch(key).trySetCount(3);
        const waits = others.countDownLatch(key).await({ waitTimeout: Infinity });
        // Who polls for a latch leaves no trace.
        const noted = makeStore.without?.includes('wakeUps') ? 0 : 1;
        const report = await until(({ waiterCount }) => waiterCount === noted);
        expect(report).toMatchObject({ kind: 'count-down latch', count: 3, holderCount: 0, remaining: expect.any(Number) });
        for (let i = 0; i < 3; i++) await locks.countDownLatch(key).countDown();
        await waits;
      });

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
        expect(new Set(report.waiters[0]!.told![0]!.holding)).toEqual(new Set(expected));
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
        await expect(others.inspect(wrong)).rejects.toBeInstanceOf(LockConfigError);
      });
    });

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
        await spaced.countDownLatch('latch').trySetCount(1);
        key = other.key;
        await until(({ waiterCount }) => waiterCount === 1);
        expect(await namesOf({}, spaced)).toEqual([lease.key, other.key]);
        expect(await namesOf({ state: 'waited' }, spaced)).toEqual([other.key]);
        expect(await namesOf({ state: 'used' }, spaced)).toEqual([lease.key, other.key.replace('wait{ed}', 'latch'), other.key]);
        expect(await namesOf({ pattern: 'h*' }, spaced)).toEqual([lease.key]);
        expect(await namesOf({ pattern: '?eld' }, spaced)).toEqual([lease.key]);
        expect(await namesOf({ pattern: '*.*' }, spaced)).toEqual([]);
        expect(await namesOf({ limit: 1 }, spaced)).toHaveLength(1);
        expect(await namesOf({ olderThan: 60_000 }, spaced)).toEqual([]);
        await lease.release();
        await other.release();
        await (await waits).release();
      });

      it('finds a hundred and more, each once', async () => {
        const leases = await Promise.all(Array.from({ length: 150 }, (_, n) => locks.acquire(`${key}-${n}`, patient)));
        expect(await namesOf({ pattern: `${key}-*` })).toEqual(leases.map((lease) => lease.key).sort());
        await Promise.all(leases.map((lease) => lease.release()));
      });

      it('ends when its signal aborts', async () => {
        const lease = await locks.acquire(key, patient);
        await expect(namesOf({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
        await lease.release();
      });

      it.each([{ pattern: '' }, { state: 'busy' as never }, { limit: 0 }, { olderThan: -1 }, { older: 1 }])('refuses %p', async (options) =>
        expect(await rejection(namesOf(options))).toBeInstanceOf(LockConfigError),
      );
    });

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
        await until(({ holders: [holder] }) => holder?.told !== undefined);
        const next = others.using(key, () => order.push(`then ${inside.length} inside`), patient);
        const { holders } = await until(({ waiterCount }) => waiterCount === 1);
        expect(await others.forceRelease(key, { reason, by: 'jane' })).toEqual({ outcome: 'gave back', holder: holders[0]!.owner });
        expect(await works).toBe('done');
        await next;
        expect(order).toEqual(['1 inside', 'then 0 inside']);
      });

      itTells('does not pass the key on within the process of a holder who was asked', async () => {
        const proud = open({ visible: true, localQueue: { time: 60_000 } });
        // Who comes second has turns for others.
        const first = await proud.acquire(key, patient);
        const works = proud.using(key, ({ signal }) => eventually(() => signal.aborted), patient);
        await first.release();
        await until(({ holders: [holder] }) => holder?.told !== undefined);
        const next = proud.acquire(key, patient);
        const { holders } = await until(({ waiterCount }) => waiterCount === 1);
        expect(await others.forceRelease(key, { reason })).toMatchObject({ outcome: 'gave back' });
        await works;
        const lease = await next;
        expect(lease.owner).not.toBe(holders[0]!.owner);
        expect(lease.signal.aborted).toBe(false);
        await lease.release();
      });

      itTells('takes the key from a holder who goes on, and tells both sides', async () => {
        const told: unknown[] = [];
        for (const each of [locks, others]) each.on('forced', ({ key: of, by, reason: why }) => told.push({ of, by, why }));
        const losses: unknown[] = [];
        locks.on('lost', (event) => losses.push(event.reason));
        const goesOn = gate();
        const call = rejection(locks.using(key, () => goesOn.passed));
        await until(({ holders: [holder] }) => holder?.told !== undefined);
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

      it.each(['semaphore', 'read/write lock'])('takes a share of a %s', async (kind) => {
        const take = (of: Locks) =>
          kind === 'semaphore' ? of.semaphore(key, { permits: 2 }).acquire(patient) : of.readWriteLock(key).read.acquire(patient);
        const [first, second] = [await take(locks), await take(others)];
        expect(await rejection(others.forceRelease(key, { reason }))).toMatchObject({
          code: 'LOCK_CONFIG',
          message: expect.stringContaining('2 holders'),
        });
        expect(await others.forceRelease(key, { reason, owner: first.owner, grace: 0 })).toMatchObject({ outcome: 'forced' });
        expect((await others.inspect(key)).holders.map(({ owner }) => owner)).toEqual([second.owner]);
        expect([await first.release(), await second.release()]).toEqual([false, true]);
      });

      it('finds one of many holders, whose lease ends after those of a hundred others', async () => {
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
        await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      });

      it('refuses a latch', async () => {
        await locks.countDownLatch(key).trySetCount(1);
        expect(await rejection(others.forceRelease(key, { reason }))).toBeInstanceOf(UnsupportedPrimitiveError);
        await locks.countDownLatch(key).countDown();
      });

      itTells('deposes a leader, who stands by again', async () => {
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

      it.each([{}, { reason: '' }, { reason, grace: -1 }, { reason, force: true }])('refuses %p', async (options) => {
        await expect(others.forceRelease(key, options as never)).rejects.toBeInstanceOf(LockConfigError);
      });
    });

    itTells('watches what happens to keys in all processes', async () => {
      const end = new AbortController();
      const seen: KeyEvent[] = [];
      const watching = (async () => {
        for await (const event of others.watch({ pattern: `${key}*`, signal: end.signal })) seen.push(event);
      })();
      const told = (event: KeyEvent['event']) => seen.find((each) => each.event === event);
      await eventually(async () => {
        await locks.using(key, async () => undefined, { label: 'Shop.sell' });
        return Boolean(told('acquired') && told('released'));
      });
      expect(told('acquired')).toMatchObject({ app: 'shop', pid: process.pid, key, label: 'Shop.sell', fencingToken: expect.any(Number) });
      expect(told('acquired')!.at).toBeInstanceOf(Date);
      const held = await locks.acquire(key);
      // Each process tells from the moment on when it has heard that somebody watches.
      await eventually(async () => {
        await others.using(key, async () => undefined, { waitTimeout: 20 }).catch(() => undefined);
        return Boolean(told('timeout') && told('waiting'));
      });
      expect(told('timeout')).toMatchObject({ app: 'other', waited: expect.any(Number) });
      await held.release();
      const brief = open({ app: 'brief', visible: true });
      await eventually(async () => {
        await brief.using(key, async () => undefined);
        return seen.some(({ app }) => app === 'brief');
      });
      await brief.using(key, async () => undefined, { label: 'Shop.close' });
      await brief.close();
      await eventually(() => seen.some(({ event, label }) => event === 'released' && label === 'Shop.close'));
      await locks.using(`no-${key}`, async () => undefined);
      end.abort();
      await watching;
      expect(new Set(seen.map((each) => each.key))).toEqual(new Set([key]));
      await expect(others.watch({ pattern: '' })[Symbol.asyncIterator]().next()).rejects.toThrow(LockConfigError);
    });

    itTells('names the deadlock of two chains, through callers of their own process, too', async () => {
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
