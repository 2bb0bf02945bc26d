import '../support/virtual-time.js';
import { LockConfigError, LockLostError, type Locks, type ReadWriteLock } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { sideOf } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { outside } from './outside.js';
import { OrderedCalls } from './ordered-calls.js';
import { rejection } from '../support/rejection.js';
import { patient } from './setting.js';

export function readWriteReentrancyContract(makeStore: MakeStore): void {
  const readers = locksOpener(makeStore, sideOf('read'));
  const writers = locksOpener(makeStore, sideOf('write'));
  let key: string;
  let locks: Locks;
  let lock: ReadWriteLock;

  beforeEach(() => {
    key = readers.newKey();
    locks = readers.open();
    lock = locks.readWriteLock(key);
  });

  /** What others could take now. */
  const others = () =>
    outside(async () => {
      const { read, write } = readers.open().readWriteLock(key);
      const leases = [await write.tryAcquire()];
      await leases[0]?.release();
      leases.push(await read.tryAcquire());
      await leases[1]?.release();
      return ['write', 'read'].filter((_, index) => leases[index]);
    });

  describe('a call chain that holds the write lock', () => {
    it('may read too, by a lease of its own with the same token, and then nobody else may', async () => {
      await lock.write.using((written) =>
        lock.read.using(
          async (lease) => {
            expect(lease.owner).not.toBe(written.owner);
            expect(lease.fencingToken).toBe(written.fencingToken);
            expect(await others()).toEqual([]);
          },
          { waitTimeout: 0 },
        ),
      );
      expect(await others()).toEqual(['write', 'read']);
    });

    it('goes on to write when it has read, and may take the write lock again while it reads', async () => {
      await lock.write.using(async (written) => {
        await lock.read.using(() => lock.write.using((again) => expect(again.owner).toBe(written.owner), { waitTimeout: 0 }), {
          waitTimeout: 0,
        });
        await written.renew();
        expect(await others()).toEqual([]);
      });
    });

    it('keeps the read lock when it gives the write lock back: readers come, and no writer', async () => {
      const lease = await lock.write.using(() => lock.read.acquire(patient), patient);
      lease.assertHeld();
      expect(await others()).toEqual(['read']);
      await lease.release();
      expect(await others()).toEqual(['write', 'read']);
    });

    it('keeps the read lock when the next writer of its process waits for the write lock', async () => {
      const first = await lock.write.acquire(patient);
      const reading = outside(() => lock.write.using(() => lock.read.acquire(patient), patient));
      const writing = outside(() => lock.write.acquire(patient));
      let isIn = false;
      void writing.then(() => (isIn = true));
      await first.release();
      const lease = await reading;
      await lease.renew();
      expect(isIn).toBe(false);
      await lease.release();
      await (await writing).release();
    });

    it('lets in, when it keeps but the read lock, the readers who came before a writer', async () => {
      const ordered = new OrderedCalls();
      const { reading, calls } = await lock.write.using(async () => {
        const calls = [
          await ordered.take('reader', readers, key),
          await ordered.take('writer', writers, key),
          await ordered.take('late', readers, key),
        ];
        return { reading: await lock.read.acquire(patient), calls };
      }, patient);
      await eventually(() => ordered.entered.includes('reader'));
      calls[0]!.end();
      await calls[0]!.ended;
      expect(ordered.entered).toEqual(['reader']);
      await reading.release();
      await eventually(() => ordered.entered.includes('writer'));
      expect(ordered.entered).not.toContain('late');
    });

    it('keeps writers out by its read lock though its write lease is lost', async () => {
      const end = gate();
      const reading = gate();
      const call = rejection(
        lock.write.using(() => lock.read.using(() => (reading.open(), end.passed), { keyTimeout: 60_000 }), {
          keyTimeout: 300,
          maxHold: 50,
        }),
      );
      await reading.passed;
      await eventually(async () => expect(await others()).toEqual(['read']));
      end.open();
      expect(await call).toBeInstanceOf(LockLostError);
      expect(await others()).toEqual(['write', 'read']);
    });

    it('cannot read by a write lease that is lost', async () => {
      const body = jest.fn();
      const call = lock.write.using(
        async (written) => {
          await writers.driver().release({ key, owner: written.owner, keepFor: 0 });
          await rejection(written.renew());
          expect(await rejection(lock.read.using(body, patient))).toBeInstanceOf(LockLostError);
        },
        { onLost: 'ignore' },
      );
      await call;
      expect(body).not.toHaveBeenCalled();
    });
  });

  describe('a call chain that only reads', () => {
    it.each([
      ['acquire', (write: ReadWriteLock['write']) => write.acquire(patient)],
      ['tryAcquire', (write: ReadWriteLock['write']) => write.tryAcquire()],
      ['using', (write: ReadWriteLock['write']) => write.using(() => 'ran', { ...patient, onTimeout: 'skip' })],
      ['acquire with reentrant: false', (write: ReadWriteLock['write']) => write.acquire({ ...patient, reentrant: false })],
      ['a fair acquire', (write: ReadWriteLock['write']) => write.acquire({ ...patient, fair: true })],
    ])('is refused the write lock at once, by %s, and reads on', async (_how, ask) => {
      await lock.read.using((reading) =>
        locks.using(`${key}:other`, async () => {
          const error = await rejection(ask(lock.write));
          expect(error).toBeInstanceOf(LockConfigError);
          expect(String(error)).toContain(key);
          expect(String(error)).toMatch(/write lock first/);
          await reading.renew();
        }),
      );
      expect(await others()).toEqual(['write', 'read']);
    });

    it('may write when it has given its read lock back, and write another key', async () => {
      await lock.read.using(
        async (reading) => {
          expect(await locks.readWriteLock(`${key}:other`).write.using(() => 'wrote')).toBe('wrote');
          await reading.release();
          expect(await lock.write.using(() => 'wrote', { waitTimeout: 0 })).toBe('wrote');
        },
        { onLost: 'ignore' },
      );
    });

    it('reads again by the same lease, also while a writer waits', async () => {
      const ordered = new OrderedCalls();
      await lock.read.using(async ({ owner }) => {
        await ordered.take('writer', writers, key);
        expect(await others()).toEqual([]);
        expect(await lock.read.using((again) => again.owner, { waitTimeout: 0 })).toBe(owner);
        expect(ordered.entered).toEqual([]);
      }, patient);
      await eventually(() => ordered.entered.includes('writer'));
    });
  });
}
