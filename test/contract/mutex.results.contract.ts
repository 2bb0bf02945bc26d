import { type Lease, type LockEvents, LockLostError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, type Misbehaviour } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewing } from './renewing.js';
import { outage, refusal } from './store-failures.js';
import { firstTurnAfterStandingStill } from '../support/time.js';

/** Every release fails, in one way or another. */
const failingReleases: [string, Misbehaviour][] = [
  ['gets no answer', () => ({ release: () => Promise.reject(outage()) })],
  ['is refused', () => ({ release: () => Promise.reject(refusal()) })],
  ['breaks the driver', () => ({ release: () => Promise.reject(new TypeError('A fault of the driver.')) })],
  [
    'breaks the driver at once',
    () => ({
      release() {
        throw new TypeError('A fault of the driver.');
      },
    }),
  ],
];

export function resultsContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey, driver } = locksOpener(makeStore, kind);
  /** Takes the key from under its holder. */
  const lose = ({ key, owner }: Lease) => driver().release({ key, owner, keepFor: 0 });

  describe('G10 results and errors of the body come through as they are', () => {
    const thrown = [new Error('404'), 'a string', undefined, null, { status: 409 }];

    it.each([undefined, null, 0, '', 'text', { id: 1 }, [1, 2]])('the result %p', async (result) => {
      expect(await open().using(newKey(), () => result)).toBe(result);
      expect(await open().using(newKey(), async () => result)).toBe(result);
    });

    it.each(thrown)('the error %p', async (error) => {
      expect(await rejection(open().using(newKey(), () => Promise.reject(error as Error)))).toBe(error);
    });

    it('an error that is thrown before the body returns its promise', async () => {
      const error = new Error('at once');
      const fail = () => {
        throw error;
      };
      const key = newKey();
      expect(await rejection(open().using(key, fail))).toBe(error);
      expect(await open().tryAcquire(key)).not.toBeNull();
    });

    it.each(failingReleases)('where the release %s', async (_how, misbehaving) => {
      const locks = open({ misbehaving, requestTimeout: 50 });
      const error = new Error('404');
      expect(await locks.using(newKey(), async () => 'done')).toBe('done');
      expect(await rejection(locks.using(newKey(), () => Promise.reject(error)))).toBe(error);
    });

    it('a body’s own error where the lease was lost as well', async () => {
      const error = new Error('404');
      const call = open().using(newKey(), async (lease) => {
        await lose(lease);
        throw error;
      });
      expect(await rejection(call)).toBe(error);
    });

    it('a result in the LockLostError, where the lease was lost and the body succeeded', async () => {
      const result = { id: 1 };
      const key = newKey();
      const call = open().using(key, async (lease) => {
        await lose(lease);
        return result;
      });
      const error = (await rejection(call)) as LockLostError;
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ code: 'LOCK_LOST', key });
      expect(error.result).toBe(result);
      expect(String(error.cause)).toContain('the release found that it belonged to somebody else');
    });

    it.each([
      [
        'by the call’s options',
        (locks: Locks, work: (lease: Lease) => Promise<string>) => locks.using(newKey(), work, { onLost: 'ignore' }),
      ],
      ['by default', (_: Locks, work: (lease: Lease) => Promise<string>) => open({ defaults: { onLost: 'ignore' } }).using(newKey(), work)],
    ])('a result although the lease was lost, where that is to be ignored %s', async (_how, call) => {
      const result = await call(open(), async (lease) => {
        await lose(lease);
        return 'done';
      });
      expect(result).toBe('done');
    });

    it.each(['a result', 'an error'])('%s before the store has answered the release, where a loss is to be ignored', async (what) => {
      const answer = gate();
      const locks = open({ misbehaving: (real) => ({ release: (request) => answer.passed.then(() => real.release(request)) }) });
      const key = newKey();
      const work = async (): Promise<string> => {
        if (what === 'an error') throw new Error('404');
        return 'done';
      };
      const outcome = locks.using(key, work, { onLost: 'ignore' }).catch((error: Error) => error.message);
      expect(await outcome).toBe(what === 'an error' ? '404' : 'done');
      // Closing waits for the answer.
      let isClosed = false;
      const closing = locks.close().then(() => (isClosed = true));
      await new Promise(setImmediate);
      expect(isClosed).toBe(false);
      answer.open();
      await closing;
      expect(await open().tryAcquire(key)).not.toBeNull();
    });
  });

  describe('events', () => {
    /** Everything that these Locks tell, in order. */
    function listen(locks: Locks) {
      const told: [keyof LockEvents, Record<string, unknown>][] = [];
      for (const event of ['acquired', 'released', 'timeout', 'lost', 'unknown'] as const) {
        locks.on(event, (payload) => told.push([event, { ...payload }]));
      }
      return told;
    }
    const time = expect.any(Number) as number;
    const event = (key: string) => ({ key, kind: expect.any(String) as string, label: undefined });

    it('tell who took a key, how long it waited, and how long it held', async () => {
      const locks = open();
      const told = listen(locks);
      const key = newKey();
      const { owner, fencingToken } = await locks.using(key, (lease) => lease);
      expect(told).toEqual([
        ['acquired', { ...event(key), owner, fencingToken, waited: time, attempts: 1, via: 'free' }],
        ['released', { ...event(key), owner, fencingToken, held: time, limited: false }],
      ]);
    });

    it('tell of a loss, once, and not that the key was given back', async () => {
      const locks = open();
      const told = listen(locks);
      const lease = await locks.acquire(newKey());
      await lose(lease);
      expect(await lease.release()).toBe(false);
      const { key, owner } = lease;
      expect(told.slice(1)).toEqual([
        [
          'lost',
          {
            ...event(key),
            owner,
            held: time,
            reason: 'taken',
            limited: false,
            afterRelease: false,
            error: expect.any(LockLostError) as LockLostError,
          },
        ],
      ]);
    });

    it('tell of each request whose outcome is unknown', async () => {
      const failing = open({
        misbehaving: () => ({ renew: renewing(() => Promise.reject(outage())), release: () => Promise.reject(outage()) }),
        requestTimeout: 50,
      });
      const told = listen(failing);
      const body = async (lease: Lease) => {
        await eventually(() => told.length >= 2);
        return lease;
      };
      const { key, owner } = await failing.using(newKey(), body, { keyTimeout: 900 });
      const unknown = (operation: string) => [
        'unknown',
        { key, owner, operation, error: expect.objectContaining({ code: 'LOCK_STORE' }) as Error },
      ];
      expect(told[1]).toEqual(unknown('renew'));
      expect(told.at(-1)).toEqual(unknown('release'));
    });

    it('tell of an event loop that stood still for more than a third of a keyTimeout', async () => {
      const locks = open();
      const lags: LockEvents['lag'][] = [];
      locks.on('lag', (event) => lags.push(event));
      const { key } = await locks.acquire(newKey(), { keyTimeout: 300 });
      await firstTurnAfterStandingStill(250);
      expect(lags).toEqual([{ lag: time, keyTimeout: 300, key }]);
      expect(lags[0]!.lag).toBeGreaterThan(100);
    });
  });
}
