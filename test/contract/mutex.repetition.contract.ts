import { passTime } from '../support/virtual-time.js';
import { LockAbortedError, LockConfigError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { failing, fault, held, losing, outage, recording, refusal } from './misbehaviour.js';
import { rejection } from '../support/rejection.js';
import type { Setting } from './setting.js';

export function repetitionContract({ open, newKey, isFree }: Setting): void {
  describe('G6 acquire, renew and release are safe to repeat', () => {
    const options = { keyTimeout: 60_000, waitTimeout: 5_000, retryInterval: 20 };
    const losses = [
      ['replies', losing],
      ['requests', failing],
    ] as const;
    let key: string;
    beforeEach(() => (key = newKey()));

    it.each(losses)('an acquire whose %s are lost is repeated and granted once', async (_what, lose) => {
      const lease = await open({ misbehaving: lose('acquire', 2) }).acquire(key, options);
      lease.assertHeld();
      expect(await open().tryAcquire(key)).toBeNull();
      expect(await lease.release()).toBe(true);
      expect(await isFree(key)).toBe(true);
    });

    it.each(losses)('a renewal whose %s are lost is repeated and no loss', async (_what, lose) => {
      const lease = await open({ misbehaving: lose('renew', 2) }).acquire(key, { keyTimeout: 900 });
      await passTime(1_000);
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
    });

    it('a release whose reply is lost is no loss, and its repetition leaves the next holder alone', async () => {
      const sent: string[] = [];
      const locks = open({ misbehaving: recording(sent, losing('release', 3)) });
      const lost = jest.fn();
      locks.on('lost', lost);
      expect(await locks.using(key, () => 'done', options)).toBe('done');
      const next = await open().acquire(key, options);
      await eventually(() => sent.filter((verb) => verb === 'release').length === 4);
      await next.renew();
      expect(await next.release()).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    });

    /** Whatever is said of a request that ends something: the key may be taken. */
    const vain: [string, () => Error][] = [
      ['gets no answer', outage],
      ['is refused for good', refusal],
      ['breaks the driver', fault],
      ['meets a wrong set-up', () => new LockConfigError('Two clusters, on purpose.')],
    ];

    it.each(vain)('a release that %s is repeated until the key is free, long before it would run out', async (_how, failure) => {
      const locks = open({ misbehaving: failing('release', 3, failure) });
      const unknown: string[] = [];
      locks.on('unknown', ({ operation }) => unknown.push(operation));
      expect(await locks.using(key, () => 'done', options)).toBe('done');
      await eventually(() => isFree(key));
      expect(unknown).toEqual(failure() instanceof LockConfigError ? [] : ['release']);
    });

    it.each(vain)('a release of a lease that is lost and %s is repeated, since a renewal may have been applied', async (_how, failure) => {
      const locks = open({ misbehaving: (real) => ({ ...losing('renew', Infinity)(real), ...failing('release', 3, failure)(real) }) });
      const lease = await locks.acquire(key, { keyTimeout: 3_000 });
      await eventually(() => lease.remaining() === 0);
      expect(await lease.release()).toBe(false);
      await passTime(1_000);
      expect(await isFree(key)).toBe(true);
    });

    it('a renewal that arrives after the release does not take the key again', async () => {
      const { answer, misbehaving } = held('renew', 'requests');
      const locks = open({ misbehaving });
      const lost = jest.fn();
      locks.on('lost', lost);
      const lease = await locks.acquire(key, options);
      const renewal = lease.renew();
      expect(await lease.release()).toBe(true);
      answer();
      await renewal;
      await passTime(50);
      expect(await isFree(key)).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    });

    it.each([
      ['is granted', 'leave', losing('acquire', 0)],
      ['gets no answer', 'leave', losing('acquire')],
      ['finds nothing to leave', 'nothing', losing('acquire', 0)],
    ])('a give-up rejects its caller at once, and when the acquire under way %s sends %s', async (_how, then, end) => {
      const holder = then === 'nothing' ? await open().acquire(key, options) : undefined;
      const sent: string[] = [];
      const { answer, misbehaving } = held('acquire', 'requests');
      const locks = open({ misbehaving: recording(sent, (real) => misbehaving({ ...real, ...end(real) })) });
      const caller = new AbortController();
      const call = rejection(locks.acquire(key, { ...options, signal: caller.signal }));
      await eventually(() => sent.length === 1);
      caller.abort();
      expect(await call).toBeInstanceOf(LockAbortedError);
      await passTime(50);
      expect(sent).toEqual(['acquire']);
      answer();
      await passTime(50);
      expect(sent).toEqual(holder ? ['acquire'] : ['acquire', 'leave']);
      await holder?.release();
      await eventually(() => isFree(key));
    });

    it.each(vain)('a give-up that %s, of an acquire whose reply was lost, is repeated until the key is free', async (_how, failure) => {
      const locks = open({ misbehaving: (real) => ({ ...losing('acquire')(real), ...failing('leave', 3, failure)(real) }) });
      expect(await rejection(locks.acquire(key, { ...options, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
      await eventually(() => isFree(key));
    });

    it('a give-up while the key is another’s needs no leave, but a fair one gives its queue entry up', async () => {
      const holder = await open().acquire(key, options);
      const sent: string[] = [];
      const locks = open({ misbehaving: recording(sent) });
      expect(await locks.tryAcquire(key)).toBeNull();
      expect(sent).toEqual(['acquire']);
      await rejection(locks.acquire(key, { ...options, waitTimeout: 30, fair: true }));
      await eventually(() => sent.at(-1) === 'leave');
      const next = open().acquire(key, { ...options, fair: true });
      await holder.release();
      (await next).assertHeld();
    });
  });
}
