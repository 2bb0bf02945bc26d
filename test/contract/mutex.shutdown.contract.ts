import { passTime } from '../support/virtual-time.js';
import { type Lease, type LockError, LockLostError, Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { held, late } from './misbehaviour.js';
import { rejection } from '../support/rejection.js';
import { long, patient, type Setting } from './setting.js';

export function shutdownContract({ open, newKey, isFree, makeStore }: Setting): void {
  let key: string;
  let locks: Locks;
  beforeEach(() => {
    key = newKey();
    locks = open();
  });

  describe('stopWaiting', () => {
    it('calls off callers that begin to wait later, lets a single try fail as before, and still gives free keys', async () => {
      await open().acquire(key, long);
      locks.stopWaiting();
      expect(await rejection(locks.acquire(key, { waitTimeout: Infinity }))).toMatchObject({
        name: 'LockAbortedError',
        reason: 'shutdown',
      });
      expect(await rejection(locks.acquire(key, { waitTimeout: 0 }))).toBeInstanceOf(LockTimeoutError);
      expect(await locks.tryAcquire(key)).toBeNull();
      (await locks.acquire(newKey())).assertHeld();
    });

    it('calls off callers whose request is under way', async () => {
      await open().acquire(key, long);
      const { sent, answer, misbehaving } = held('acquire', 'requests');
      const slow = open({ misbehaving });
      const waiting = rejection(slow.acquire(key, { waitTimeout: Infinity }));
      await sent;
      slow.stopWaiting();
      answer();
      expect(await waiting).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });

    it.each([
      ['waits already', false],
      ['begins to wait later', true],
    ])('lets a call that holds a lease wait for one more key until the shutdownTimeout, where it %s', async (_when, isLater) => {
      locks = open({ shutdownTimeout: 20_000 });
      const others = [newKey(), newKey()];
      const holders = [await open().acquire(key, long), await open().acquire(others[1]!, long)];
      const started = gate();
      const body = async () => {
        started.open();
        if (isLater) await passTime(50);
        return locks.using(key, () => locks.multiLock(others).using(() => 'done', patient), patient);
      };
      const call = locks.using(newKey(), body);
      const stranger = rejection(locks.acquire(key, patient));
      await started.passed;
      const closed = locks.close();
      expect(await stranger).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
      await passTime(500);
      await holders[0]!.release();
      await passTime(500);
      await holders[1]!.release();
      expect(await call).toBe('done');
      await closed;
    });

    it('calls a call that holds a lease off when the shutdownTimeout is over', async () => {
      locks = open({ shutdownTimeout: 300 });
      await open().acquire(key, long);
      const started = gate();
      const call = rejection(locks.using(newKey(), () => (started.open(), locks.using(key, () => 'ran', patient))));
      await started.passed;
      await locks.close();
      expect(await call).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });
  });

  describe('close', () => {
    it('waits for bodies that end in time, and releases their keys', async () => {
      locks = open({ shutdownTimeout: 20_000 });
      const [started, end] = [gate(), gate()];
      const inner = newKey();
      const states: string[] = [];
      const call = locks.using(key, async (lease) => {
        started.open();
        await end.passed;
        await locks.using(inner, () => states.push('free key'));
        await locks.using(key, () => states.push('own key'));
        states.push(lease.signal.aborted ? 'aborted' : 'held');
        return 'done';
      });
      await started.passed;
      const closed = locks.close().then(() => states.push('closed'));
      await passTime(50);
      end.open();
      expect(await call).toBe('done');
      await closed;
      expect(states).toEqual(['free key', 'own key', 'held', 'closed']);
      expect(await isFree(key)).toBe(true);
    });

    it('aborts bodies that do not end in time, releases their keys, and lets their calls say that the lease was lost', async () => {
      const end = gate();
      const leases: Lease[] = [];
      const body = async (lease: Lease) => {
        leases.push(lease);
        await end.passed;
        return 'done';
      };
      const hasty = open({ shutdownTimeout: 50 });
      const call = rejection(hasty.using(key, body, { keyTimeout: 60_000 }));
      await eventually(() => leases.length === 1);
      await hasty.close();
      expect(await isFree(key)).toBe(true);
      expect(leases[0]!.signal.aborted).toBe(true);
      expect(leases[0]!.signal.reason).toBeInstanceOf(LockLostError);
      expect(() => leases[0]!.assertHeld()).toThrow(LockLostError);
      end.open();
      expect(await call).toMatchObject({ name: 'LockLostError', result: 'done' });
    });

    it('does not wait for bare leases, and releases them', async () => {
      locks = open({ shutdownTimeout: 60_000 });
      const lease = await locks.acquire(key, long);
      const { signal } = lease;
      await locks.close();
      expect(signal.aborted).toBe(true);
      expect(lease.remaining()).toBe(0);
      expect(await isFree(key)).toBe(true);
    });

    it('leaves the answer of a release alone that was under way', async () => {
      const { answer, misbehaving } = held('release', 'requests');
      const slow = open({ misbehaving });
      const lease = await slow.acquire(key);
      const first = lease.release();
      const closed = slow.close();
      answer();
      expect([await first, await lease.release()]).toEqual([true, true]);
      await closed;
      expect(lease.signal.aborted).toBe(false);
    });

    it('gives nothing any more, and can be repeated', async () => {
      const body = jest.fn();
      await Promise.all([locks.close(), locks.close()]);
      await locks.close();
      for (const call of [locks.acquire(key), locks.tryAcquire(key), locks.using(key, body), locks.mutex(key).acquire()]) {
        expect(await rejection(call)).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
      }
      expect(body).not.toHaveBeenCalled();
    });

    it.each([
      ['at once', 0],
      ['after a while', 20],
      ['later than the shutdownTimeout', 300],
    ])('gives nothing to a request that is under way and answered %s, and leaves the key free', async (_when, delay) => {
      const body = jest.fn();
      const slow = open({ shutdownTimeout: 100, misbehaving: late('acquire', delay) });
      const isClosed = jest.fn();
      await slow.tryAcquire(newKey());
      const calls = [slow.acquire(key), slow.using(newKey(), () => body(isClosed.mock.calls.length))];
      const outcomes = Promise.allSettled(calls);
      await slow.close();
      isClosed();
      // What was granted before it closed was released by that; the rest is not granted.
      for (const outcome of await outcomes) {
        if (outcome.status === 'rejected') expect(['LOCK_ABORTED', 'LOCK_LOST']).toContain((outcome.reason as LockError).code);
        else if (outcome.value) expect((outcome.value as Lease).remaining()).toBe(0);
      }
      expect(body).not.toHaveBeenCalledWith(1);
      expect(await isFree(key)).toBe(true);
    });

    it('of the last Locks of a store closes it, and no other does', async () => {
      const store = { ...makeStore() };
      const close = jest.spyOn(store, 'close');
      const [one, other] = [new Locks(store), new Locks(store)];
      await one.close();
      expect(close).not.toHaveBeenCalled();
      await other.using(key, () => undefined);
      await other.close();
      expect(close).toHaveBeenCalledTimes(1);
    });
  });
}
