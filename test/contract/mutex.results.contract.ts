import '../support/virtual-time.js';
import type { Lease, LockError, LockEvents, Locks } from 'nestjs-distributed-lock/core';
import { LockLostError, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { failing, fault, held, outage, refusal } from './misbehaviour.js';
import type { Misbehaviour } from './open-locks.js';
import { rejection, throwing } from '../support/rejection.js';
import { long, type Setting } from './setting.js';

export function resultsContract({ open, newKey, isFree, takeAway }: Setting): void {
  let key: string;
  beforeEach(() => (key = newKey()));

  describe('G10 results and errors of the body come through as they are', () => {
    it.each([undefined, null, 0, '', { id: 1 }, [1, 2]])('the result %p', async (result) => {
      expect(await open().using(key, () => result)).toBe(result);
      expect(await open().using(key, async () => result)).toBe(result);
    });

    it.each([new Error('404'), 'a string', undefined, null, { status: 409 }])('the error %p', async (error) => {
      expect(await rejection(open().using(key, () => Promise.reject(error as Error)))).toBe(error);
      expect(await rejection(open().using(key, throwing(error as Error)))).toBe(error);
      expect(await isFree(key)).toBe(true);
    });

    it.each<[string, Misbehaviour]>([
      ['gets no answer', failing('release')],
      ['is refused', failing('release', Infinity, refusal)],
      ['breaks the driver', failing('release', Infinity, fault)],
      ['breaks the driver at once', () => ({ release: throwing(fault()) })],
    ])('where the release %s', async (_how, misbehaving) => {
      const locks = open({ misbehaving, requestTimeout: 50 });
      const error = new Error('404');
      expect(await locks.using(newKey(), async () => 'done')).toBe('done');
      expect(await rejection(locks.using(newKey(), () => Promise.reject(error)))).toBe(error);
    });

    it('a body’s own error where the lease was lost as well', async () => {
      const error = new Error('404');
      expect(await rejection(open().using(key, (lease) => takeAway(lease).then(throwing(error))))).toBe(error);
    });

    it('a result in the LockLostError, where the lease was lost and the body succeeded, unless that is to be ignored', async () => {
      const result = { id: 1 };
      const work = (lease: Lease) => takeAway(lease).then(() => result);
      const error = (await rejection(open().using(key, work))) as LockLostError;
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ code: 'LOCK_LOST', key });
      expect(error.result).toBe(result);
      expect(String(error.cause)).toContain('the release found that it belonged to somebody else');
      expect(await open().using(key, work, { onLost: 'ignore' })).toBe(result);
      expect(await open({ defaults: { onLost: 'ignore' } }).using(key, work)).toBe(result);
    });

    it.each(['done', '404'])('%s before the store has answered the release, where a loss is to be ignored', async (what) => {
      const { answer, misbehaving } = held('release', 'requests');
      const locks = open({ misbehaving });
      const work = async () => (what === '404' ? throwing(new Error('404'))() : what);
      expect(await locks.using(key, work, { onLost: 'ignore' }).catch((error: Error) => error.message)).toBe(what);
      const isClosed = jest.fn();
      const closing = locks.close().then(isClosed);
      await new Promise(setImmediate);
      expect(isClosed).not.toHaveBeenCalled();
      answer();
      await closing;
      expect(await isFree(key)).toBe(true);
    });
  });

  describe('a call whose wait timeout ends', () => {
    const body = () => 'body';
    let locks: Locks;
    beforeEach(async () => {
      locks = open({ defaults: { waitTimeout: 0 } });
      await open().acquire(key, long);
    });

    it('is an error, or nothing with onTimeout: "skip" of the call or of the Locks', async () => {
      expect(await rejection(locks.using(key, body))).toBeInstanceOf(LockTimeoutError);
      expect(await locks.using(key, body, { onTimeout: 'skip' })).toBeUndefined();
      expect(await open({ defaults: { onTimeout: 'skip', waitTimeout: 0 } }).using(key, body)).toBeUndefined();
    });

    it('is what a function makes of it, which gets the key and the error', async () => {
      const instead = jest.fn(async () => 'instead');
      expect(await locks.using(key, body, { onTimeout: instead })).toBe('instead');
      const error = expect.any(LockTimeoutError) as LockError;
      expect(instead).toHaveBeenCalledWith({ key, error, args: [], target: undefined, method: undefined });
      for (const value of [null, undefined, 5]) expect(await locks.using(key, body, { onTimeout: () => value })).toBe(value);
      const failure = new Error('No stock.');
      for (const onTimeout of [throwing(failure), () => Promise.reject(failure)]) {
        expect(await rejection(locks.using(key, body, { onTimeout }))).toBe(failure);
      }
    });

    it('concerns only the lock of that call: a nested one that times out makes the outer one fail', async () => {
      const outer = locks.using(newKey(), () => locks.using(key, body), { onTimeout: 'skip' });
      expect(await rejection(outer)).toMatchObject({ name: 'LockTimeoutError', key });
    });

    it('is null for a tryAcquire, which says nothing of outages and wrong options', async () => {
      expect(await locks.tryAcquire(key)).toBeNull();
      expect(await locks.mutex(key).tryAcquire({ keyTimeout: 500 })).toBeNull();
      const away = open({ misbehaving: failing('acquire') });
      expect(await rejection(away.tryAcquire(key))).toBeInstanceOf(StoreError);
    });
  });

  describe('events', () => {
    /** Every event of these Locks, in order. */
    function listen(locks: Locks) {
      const events: [keyof LockEvents, Record<string, unknown>][] = [];
      for (const event of ['acquired', 'released', 'timeout', 'lost', 'unknown'] as const) {
        locks.on(event, (payload) => events.push([event, { ...payload }]));
      }
      return events;
    }
    const time = expect.any(Number) as number;
    const common = (of: string) => ({ key: of, kind: expect.any(String) as string, label: undefined });

    it('say who took a key, how long it waited, and how long it held', async () => {
      const locks = open();
      const events = listen(locks);
      const { owner, fencingToken } = await locks.using(key, (lease) => lease);
      expect(events).toEqual([
        ['acquired', { ...common(key), owner, fencingToken, waited: time, attempts: 1, via: 'free' }],
        ['released', { ...common(key), owner, fencingToken, held: time, limited: false }],
      ]);
    });

    it('say of each request that its outcome is unknown', async () => {
      const shaky = open({ misbehaving: (real) => ({ ...failing('renew')(real), ...failing('release')(real) }), requestTimeout: 50 });
      const events = listen(shaky);
      const body = (lease: Lease) => eventually(() => events.length >= 2).then(() => lease);
      const { key: of, owner } = await shaky.using(key, body, { keyTimeout: 900 });
      const error = expect.objectContaining({ code: outage().code }) as Error;
      expect(events[1]).toEqual(['unknown', { key: of, owner, operation: 'renew', error }]);
      expect(events.at(-1)).toEqual(['unknown', { key: of, owner, operation: 'release', error }]);
    });
  });
}
